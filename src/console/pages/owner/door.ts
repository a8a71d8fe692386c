/** Before somebody is in: a sign-in link that was opened, or how to get one. */

import { ask } from "../parts/api.ts";
import { useDeed } from "../parts/load.ts";
import { LanguageChoice } from "../parts/shell.ts";
import { html, useState, type VNode } from "../parts/view.ts";
import { Button, Form } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";

export function Door({ onEntered }: { onEntered: () => void }): VNode {
  // What stands behind the # is read once, and leaves the address at once: nobody is to find it in a history.
  const [token] = useState(() => location.hash.slice(1));
  const enter = useDeed(async () => {
    await ask("/sign-in/link", { method: "POST", body: { token } });
    history.replaceState(null, "", location.pathname);
    onEntered();
  });
  return html`<main class="door panel">
    <h1>Tollgate</h1>
    ${
      token
        ? html`<p>${T.owner.door.linkOpened}</p>
          <${Form} deed=${enter} onSubmit=${() => enter.run()}>
            <${Button} kind="main" isRunning=${enter.isRunning}>${T.owner.door.enter}</${Button}>
          </${Form}>`
        : html`<p>${T.owner.door.signedOut}</p><p class="faint">${T.owner.door.askOperator}</p>`
    }
    <${LanguageChoice} />
  </main>`;
}
