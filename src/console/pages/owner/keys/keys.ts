/** Keys: the list, the form for a new one, or one key; the address says which. */
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { CreateKey } from "./create.ts";
import { KeyPage } from "./key.ts";
import { KeyList } from "./list.ts";

const KEY_ID = /^key_[0-9A-Za-z]{18}$/;

export function Keys({ session, place }: PageProps): VNode {
  const [, which] = place.path;
  if (which === undefined) return html`<${KeyList} session=${session} place=${place} />`;
  if (which === "new") return html`<${CreateKey} session=${session} />`;
  if (!KEY_ID.test(which))
    return html`<h1>${T.common.notFound}</h1><p><a href=${hrefOf(["keys"])}>${T.owner.keys.back}</a></p>`;
  return html`<${KeyPage} key=${which} id=${which} />`;
}
