/** A conversation with a model, sent as any client sends it, with its duration and cost. */
import type { OwnModelAnswer } from "../../../answers/own-usage.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Code, Problem } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useModels } from "../model-names.ts";
import type { PageProps } from "../session.ts";
import { useConversation } from "./conversation.ts";
import type { ProtocolName } from "./protocols.ts";
import { Settings, type TrySettings } from "./settings.ts";
import { snippetsOf } from "./snippets.ts";
import { Turns } from "./turns.ts";

const MAX_TOKENS = "1024";

export function TryIt({ session, place }: PageProps): VNode {
  const words = T.owner.tryIt;
  const models = useModels();
  const [settings, setSettings] = useState<TrySettings>({
    model: place.query.get("model") ?? "",
    protocol: "chat",
    keyKind: "made",
    group: "",
    pasted: "",
    maxTokens: MAX_TOKENS,
    system: "",
  });
  const [message, setMessage] = useState("");
  const conversation = useConversation(session.account);
  const model = settings.model || firstUsable(models);
  const group = settings.group || firstGroup(models, model) || session.groups[0] || "";
  const maxTokens = /^[1-9]\d{0,8}$/.test(settings.maxTokens) ? Number(settings.maxTokens) : undefined;
  const asked = { ...settings, model, group };
  const isReady =
    model !== "" &&
    message.trim() !== "" &&
    maxTokens !== undefined &&
    (settings.keyKind === "own" ? settings.pasted !== "" : group !== "");
  const about = { model, system: settings.system, maxTokens: maxTokens ?? 1 };
  const sendNow = () => {
    if (!isReady || conversation.isRunning) return;
    setMessage("");
    void conversation.send(message, {
      protocol: settings.protocol,
      about,
      group,
      pasted: settings.keyKind === "own" ? settings.pasted.trim() : undefined,
      onUnsent: (unsent) => setMessage((now) => now || unsent),
    });
  };
  const submitted = (event: Event) => {
    event.preventDefault();
    sendNow();
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) sendNow();
  };
  const turns = conversation.turns.map(({ role, text }) => ({ role, text }));
  const shown = message.trim() ? [...turns, { role: "user" as const, text: message }] : turns;
  return html`<h1>${words.title}</h1>
    <p class="faint">${words.intro}</p>
    <${Settings} settings=${asked} models=${models} groups=${session.groups} isBadLimit=${maxTokens === undefined}
      onChange=${(change: Partial<TrySettings>) => setSettings({ ...settings, ...change })} />
    <${Turns} turns=${conversation.turns} />
    <${Problem} refused=${conversation.refused} />
    <form class="panel" onSubmit=${submitted} novalidate>
      <div class="field"><label for="message">${words.message}</label>
        <textarea id="message" aria-describedby="message-hint" value=${message} onKeyDown=${pressed}
          onInput=${(event: Event) => setMessage((event.target as HTMLTextAreaElement).value)}></textarea>
        <p id="message-hint" class="hint">${words.messageHint}</p></div>
      <div class="row">
        <${Button} kind="main" disabled=${!isReady} isRunning=${conversation.isRunning}>${words.send}</${Button}>
        ${conversation.isRunning && html`<${Button} onClick=${conversation.stop}>${words.stop}</${Button}>`}
        ${conversation.turns.length > 0 && !conversation.isRunning && html`<${Button} onClick=${conversation.forget}>${words.again}</${Button}>`}
      </div>
    </form>
    <${Elsewhere} protocol=${settings.protocol} conversation=${{ ...about, turns: shown }} />`;
}

function Elsewhere({
  protocol,
  conversation,
}: {
  readonly protocol: ProtocolName;
  readonly conversation: Parameters<typeof snippetsOf>[1];
}): VNode {
  const words = T.owner.tryIt;
  const { curl, python, javascript } = snippetsOf(protocol, conversation, location.origin);
  return html`<details>
    <summary>${words.theRequest}</summary>
    <p class="hint">${words.theRequestHint}</p>
    <${Code} label=${words.curl} text=${curl} />
    <${Code} label=${words.python} text=${python} />
    <${Code} label=${words.javascript} text=${javascript} />
  </details>`;
}

const firstUsable = (models: readonly OwnModelAnswer[]): string =>
  (models.find(({ usable }) => usable) ?? models[0])?.name ?? "";

/** The first group in which the model can be used now; otherwise the first one that serves it. */
function firstGroup(models: readonly OwnModelAnswer[], name: string): string | undefined {
  const groups = models.find((model) => model.name === name)?.groups ?? [];
  return (groups.find(({ refusal }) => refusal === null) ?? groups[0])?.name;
}
