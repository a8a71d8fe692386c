/** Keys: the list, a new one, and one by itself; the address says which. */
import { html, type VNode } from "../../parts/view.ts";
import type { PageProps } from "../session.ts";
import { CreateKey } from "./create.ts";
import { KeyPage } from "./key.ts";
import { KeyList } from "./list.ts";

export function Keys({ session, place }: PageProps): VNode {
  const [, which] = place.path;
  if (which === undefined) return html`<${KeyList} session=${session} place=${place} />`;
  if (which === "new") return html`<${CreateKey} session=${session} />`;
  return html`<${KeyPage} key=${which} id=${which} />`;
}
