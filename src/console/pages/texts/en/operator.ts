/** Words of the operator's pages. */
export const operator = {
  title: "Tollgate",
};
