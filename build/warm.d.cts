declare const warm: { readonly flags: readonly string[] };
export = warm;
