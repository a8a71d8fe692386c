/** Finds a request by its id. */
import { go, hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const REQUEST_ID = /req_[0-9A-Za-z]{24}(?![0-9A-Za-z])/;

export function FindRequest(): VNode {
  const words = T.owner.help;
  const [typed, setTyped] = useState("");
  const [isWrong, setWrong] = useState(false);
  // A whole error message may have been pasted; it contains the id.
  const submitted = (event: Event) => {
    event.preventDefault();
    const id = REQUEST_ID.exec(typed)?.[0];
    setWrong(id === undefined);
    if (id !== undefined) go(hrefOf(["usage", id]));
  };
  const input = (event: Event) => setTyped((event.target as HTMLInputElement).value);
  return html`<section class="panel"><h2>${words.request}</h2>
    <p class="hint">${words.requestHint}</p>
    <form onSubmit=${submitted} novalidate>
      <${Field} label=${words.requestId} hint=${words.requestIdHint} wrong=${isWrong ? words.badRequestId : undefined}>${({
        id,
        describedBy,
      }: {
        id: string;
        describedBy?: string;
      }) =>
        html`<input id=${id} aria-describedby=${describedBy} aria-invalid=${isWrong} autocomplete="off" spellcheck="false" onInput=${input} />`}</${Field}>
      <${Button} kind="main">${words.look}</${Button}>
    </form>
  </section>`;
}
