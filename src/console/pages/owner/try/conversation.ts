/** The conversation: its messages, the running request, and the duration and cost of each answer. */
import type { OwnRequestAnswer } from "../../../answers/own-usage.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { useCallback, useLayoutEffect, useRef, useState } from "../../parts/view.ts";
import { useConsoleKey } from "./console-key.ts";
import type { Piece, ProtocolName, TrialConversation } from "./protocols.ts";
import { type RefusedSend, send } from "./send.ts";

export interface ShownTurn {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly thinking: string;
  readonly requestId: string | undefined;
  readonly firstMs: number | undefined;
  readonly wholeMs: number | undefined;
  readonly input: number | undefined;
  readonly output: number | undefined;
  /** `none`: the ledger has no line for it yet. */
  readonly usd: string | "coming" | "none" | undefined;
  readonly refused: RefusedSend | undefined;
  readonly failed: string | undefined;
  readonly ending: "running" | "complete" | "cut" | "stopped";
}

const TURN: ShownTurn = {
  role: "assistant",
  text: "",
  thinking: "",
  requestId: undefined,
  firstMs: undefined,
  wholeMs: undefined,
  input: undefined,
  output: undefined,
  usd: undefined,
  refused: undefined,
  failed: undefined,
  ending: "running",
};

interface MessageOptions {
  readonly protocol: ProtocolName;
  readonly about: Omit<TrialConversation, "turns">;
  readonly group: string;
  /** A key that the person has pasted; undefined: one is created. */
  readonly pasted: string | undefined;
  /** Called with the message if no answer arrived. */
  readonly onUnsent: (message: string) => void;
}

interface ConversationState {
  readonly turns: readonly ShownTurn[];
  readonly isRunning: boolean;
  /** Why nothing was sent. */
  readonly refused: ApiError | undefined;
  readonly send: (message: string, asked: MessageOptions) => Promise<void>;
  readonly stop: () => void;
  readonly forget: () => void;
}

type Change = (turn: ShownTurn) => ShownTurn;

export function useConversation(account: string): ConversationState {
  const [turns, setTurns] = useState<readonly ShownTurn[]>([]);
  const [isRunning, setRunning] = useState(false);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  const running = useRef<AbortController | undefined>(undefined);
  const keyIn = useConsoleKey(account);
  useLayoutEffect(() => () => running.current?.abort(), []);
  const change = useCallback((work: Change, requestId?: string) => {
    setTurns((all) =>
      all.map((turn, at) => ((requestId ? turn.requestId === requestId : at === all.length - 1) ? work(turn) : turn)),
    );
  }, []);
  const sendNow = async (message: string, asked: MessageOptions) => {
    if (running.current) return;
    const aborter = new AbortController();
    running.current = aborter;
    setRunning(true);
    setRefused(undefined);
    // Messages that were refused or had no text are not sent again.
    const before = turns.filter((turn, at) => turn.text !== "" && (turn.role === "assistant" || turns[at + 1]?.text));
    const said = [...before, { role: "user" as const, text: message }].map(({ role, text }) => ({ role, text }));
    try {
      const key = asked.pasted ?? (await keyIn(asked.group));
      setTurns([...before, { ...TURN, role: "user", text: message, ending: "complete" }, TURN]);
      await answer(key, { ...asked.about, turns: said }, asked.protocol, aborter.signal, change);
    } catch (error) {
      if (aborter.signal.aborted) {
        change((turn) => (turn.ending === "running" ? { ...turn, ending: "stopped" } : turn));
      } else {
        setRefused(error instanceof ApiError ? error : new ApiError(0, "unreachable", "", ""));
        setTurns(before);
        asked.onUnsent(message);
      }
    } finally {
      running.current = undefined;
      setRunning(false);
    }
  };
  const stop = useCallback(() => running.current?.abort(), []);
  const forget = useCallback(() => {
    setTurns([]);
    setRefused(undefined);
  }, []);
  return { turns, isRunning, refused, send: sendNow, stop, forget };
}

async function answer(
  key: string,
  conversation: TrialConversation,
  protocol: ProtocolName,
  signal: AbortSignal,
  change: (work: Change, requestId?: string) => void,
): Promise<void> {
  const beganMs = performance.now();
  const passed = () => Math.round(performance.now() - beganMs);
  const onPiece = (piece: Piece) => {
    const isFirst = piece.text !== undefined || piece.thinking !== undefined;
    change((turn) => ({
      ...turn,
      text: turn.text + (piece.text ?? ""),
      thinking: turn.thinking + (piece.thinking ?? ""),
      input: piece.input ?? turn.input,
      output: piece.output ?? turn.output,
      failed: piece.failed ?? turn.failed,
      firstMs: turn.firstMs ?? (isFirst ? passed() : undefined),
    }));
  };
  const onAnswered = (requestId: string | undefined) => change((turn) => ({ ...turn, requestId }));
  const sent = await send(protocol, conversation, { key, signal, onAnswered, onPiece });
  const { refused, ending, requestId } = sent;
  const isCharged = refused === undefined && requestId !== undefined;
  change((turn) => ({ ...turn, refused, ending, wholeMs: passed(), usd: isCharged ? "coming" : undefined }));
  if (!isCharged) return;
  // Its charge is in the ledger a moment after the answer; the next message need not wait for it.
  void chargeOf(requestId).then((usd) => change((turn) => ({ ...turn, usd }), requestId));
}

/** Delays between the queries of the ledger; each is twice as long as the one before. */
const ASK_AGAIN_MS = [50, 100, 200, 400, 800, 1_600, 3_200];

async function chargeOf(requestId: string): Promise<string> {
  for (const pauseMs of ASK_AGAIN_MS) {
    try {
      const { line, next } = await ask<OwnRequestAnswer>(`/requests/${encodeURIComponent(requestId)}`);
      if (line) return line.usd;
      if (next === null) return "0.00";
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) return "none";
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return "none";
}
