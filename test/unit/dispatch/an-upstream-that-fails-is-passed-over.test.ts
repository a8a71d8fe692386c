/** An upstream that fails is passed over and probed again, modelled on Envoy's outlier detection. */
import assert from "node:assert/strict";
import test from "node:test";
import { type Ejection, Health, type HealthVerdict } from "../../../src/dispatch/upstream/health.ts";
import { measureUpstreams } from "../../../src/dispatch/upstream/watch.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import type { Route } from "../../../src/values/catalog.ts";
import { answerOf, refusal } from "../../../src/values/errors.ts";
import type { UpstreamSettings } from "../../../src/values/settings.ts";
import {
  ask,
  assertAnswered,
  byName,
  closedPort,
  FakeClock,
  HEALTH,
  heldServer,
  httpServer,
  jsonReply,
  rawServer,
  refusalIn,
  replying,
  rig,
  route,
  upstream,
} from "./rig.ts";

const STRICT: UpstreamSettings["health"] = {
  failures: 3,
  failurePercent: 50,
  outcomesMin: 10,
  windowMs: 30_000,
  coolDownMs: 4_000,
  coolDownMaxMs: 60_000,
};

interface Watched {
  readonly health: Health;
  readonly clock: FakeClock;
  readonly ejections: Ejection[];
  returned: number;
  report(kind: HealthVerdict["kind"], more?: Partial<HealthVerdict>): void;
}

function watched(settings: Partial<UpstreamSettings["health"]> = {}, random = () => 0.5): Watched {
  const clock = new FakeClock();
  const ejections: Ejection[] = [];
  const made: Watched = {
    clock,
    ejections,
    returned: 0,
    health: new Health(
      { ...STRICT, ...settings },
      {
        clock,
        random,
        onEjected: (ejection) => ejections.push(ejection),
        onReturned: () => {
          made.returned += 1;
        },
      },
    ),
    report: (kind, more = {}) =>
      made.health.report({
        kind,
        model: "m",
        retryAfterS: undefined,
        startedAtMs: clock.monotonicMs(),
        probe: false,
        ...more,
      }),
  };
  return made;
}

test("consecutive failures eject, connection failures and error statuses counted separately, and any answer resets the count", () => {
  const { health, report, ejections } = watched();
  for (const kind of ["local", "local", "alive", "local", "local", "ok", "remote", "remote"] as const) report(kind);
  assert.equal(health.status("m"), "healthy");
  // A server that answers 500 can be reached.
  for (const kind of ["local", "local", "remote"] as const) report(kind);
  assert.equal(health.status("m"), "ejected");
  assert.deepEqual(ejections, [{ reason: "failures", restMs: 4_000, repeated: 1 }]);
});

test("any answer, even a 500, ends a run of connection failures", () => {
  const { health, report } = watched();
  for (const kind of ["local", "local", "remote", "local", "local"] as const) report(kind);
  assert.equal(health.status("m"), "healthy");
  report("local");
  assert.equal(health.status("m"), "ejected");
});

test("a high share of failures ejects once there are enough outcomes, and only those within the window count", () => {
  const { health, report, clock, ejections } = watched({ failures: 100 });
  for (let at = 0; at < 4; at++) report("remote");
  for (let at = 0; at < 4; at++) report("ok");
  report("remote");
  assert.equal(health.status("m"), "healthy", "9 outcomes are too few");
  clock.advance(31_000);
  report("remote");
  assert.equal(health.status("m"), "healthy", "the window has passed");
  for (let at = 0; at < 5; at++) report("ok");
  for (let at = 0; at < 3; at++) report("local");
  assert.equal(ejections.length, 0);
  report("remote");
  assert.deepEqual(
    ejections.map(({ reason }) => reason),
    ["failure_rate"],
  );
});

test("outcomes from before its return do not eject an upstream again", () => {
  const { health, report, clock } = watched({ failures: 100 });
  for (let at = 0; at < 10; at++) report("remote");
  assert.equal(health.status("m"), "ejected");
  clock.advance(4_000);
  assert.equal(health.begin("m"), true);
  report("ok", { probe: true });
  report("remote");
  assert.deepEqual([health.status("m"), health.state().outcomes.remote], ["healthy", 1]);
});

test("a probe that is rate-limited returns the upstream, and its model waits", () => {
  const made = watched();
  const { health, report, clock } = made;
  for (let at = 0; at < 3; at++) report("remote");
  clock.advance(4_000);
  assert.equal(health.begin("m"), true);
  report("rate_limited", { probe: true, retryAfterS: 7 });
  assert.deepEqual([made.returned, health.status("other"), health.status("m")], [1, "healthy", "ejected"]);
  clock.advance(7_000);
  assert.equal(health.status("m"), "healthy");
});

test("faults of the caller, rate limits and failures on our side do not count as failures", () => {
  const { health, report, ejections } = watched();
  for (let at = 0; at < 100; at++) for (const kind of ["alive", "none"] as const) report(kind);
  for (let at = 0; at < 100; at++) report("rate_limited", { model: "other" });
  assert.equal(health.status("m"), "healthy");
  assert.equal(health.status("other"), "ejected");
  assert.deepEqual(ejections, []);
  assert.equal(health.state().outcomes.rate_limited, 100);
});

test("the cool-down doubles with each repetition up to a maximum, with random spread, and is reset after a healthy period", () => {
  let chance = 0.5;
  const { health, report, clock, ejections } = watched({}, () => chance);
  for (let at = 0; at < 3; at++) report("local");
  const failProbe = () => {
    clock.advance(ejections.at(-1)?.restMs ?? 0);
    assert.equal(health.begin("m"), true);
    report("local", { probe: true });
  };
  for (let at = 0; at < 5; at++) failProbe();
  assert.deepEqual(
    ejections.map(({ restMs }) => restMs),
    [4_000, 8_000, 16_000, 32_000, 60_000, 60_000],
  );
  clock.advance(60_000);
  assert.equal(health.begin("m"), true);
  report("ok", { probe: true });
  clock.advance(60_000);
  for (let at = 0; at < 3; at++) report("local");
  assert.equal(ejections.at(-1)?.restMs, 60_000, "a failure so soon after the last ejection counts as a repetition");
  clock.advance(60_000);
  assert.equal(health.begin("m"), true);
  report("ok", { probe: true });
  clock.advance(60_001);
  chance = 0;
  for (let at = 0; at < 3; at++) report("local");
  assert.equal(ejections.at(-1)?.restMs, 3_200, "the shortest jittered rest is a fifth less");
});

test("there is one probe at a time, and only requests sent after the ejection count", () => {
  const made = watched();
  const { health, report, clock } = made;
  const beforeMs = clock.monotonicMs();
  clock.advance(10);
  for (let at = 0; at < 3; at++) report("remote");
  report("ok", { startedAtMs: beforeMs });
  assert.equal(health.status("m"), "ejected");
  // Concurrent requests that were already under way fail, too: that is one ejection.
  for (let at = 0; at < 50; at++) report("remote", { startedAtMs: beforeMs });
  assert.equal(made.ejections.length, 1);
  clock.advance(4_000);
  assert.equal(health.status("m"), "probe");
  assert.equal(health.begin("m"), true);
  assert.equal(health.status("m"), "ejected");
  assert.equal(health.begin("m"), false);
  // Its client disconnected: the next request is the probe.
  report("none", { probe: true });
  assert.equal(health.begin("m"), true);
  report("alive", { probe: true });
  assert.equal(health.status("m"), "healthy");
  assert.equal(made.returned, 1);
});

test("a probe without an answer within a cool-down does not prevent another one", () => {
  const { health, report, clock } = watched();
  for (let at = 0; at < 3; at++) report("remote");
  clock.advance(4_000);
  assert.equal(health.begin("m"), true);
  clock.advance(STRICT.coolDownMs - 1);
  assert.deepEqual([health.status("m"), health.state().health], ["ejected", "ejected"]);
  clock.advance(1);
  assert.deepEqual([health.status("m"), health.state().health], ["probe", "probe"]);
  assert.equal(health.begin("m"), true);
  report("ok", { probe: true });
  assert.equal(health.status("m"), "healthy");
  // The end of the first probe changes nothing.
  report("none", { probe: true });
  assert.equal(health.status("m"), "healthy");
});

test("a retry-after is obeyed up to the maximum cool-down: that of a 429 for its model, that of an overload for all models", () => {
  const { health, report, clock, ejections } = watched();
  report("rate_limited", { retryAfterS: 7 });
  assert.deepEqual([health.status("m"), health.status("other"), health.restMs("m")], ["ejected", "healthy", 7_000]);
  clock.advance(7_000);
  assert.equal(health.status("m"), "healthy", "a probe is not needed, since it was never ejected");
  report("remote", { retryAfterS: 3_600 });
  assert.deepEqual([health.status("other"), health.restMs("other")], ["ejected", 60_000]);
  assert.equal(health.state().reason, "retry_after");
  clock.advance(60_000);
  assert.equal(health.status("m"), "healthy");
  assert.deepEqual(ejections, []);
});

test("a shorter retry-after does not shorten an earlier, longer one of a model", () => {
  const { health, report, clock } = watched();
  report("rate_limited", { retryAfterS: 10 });
  clock.advance(1_000);
  report("rate_limited", { retryAfterS: 1 });
  assert.equal(health.restMs("m"), 9_000);
  report("rate_limited", { retryAfterS: 20 });
  assert.equal(health.restMs("m"), 20_000);
});

test("a shorter retry-after does not shorten an earlier, longer one of an ejected server", () => {
  const { health, report, clock } = watched();
  report("remote", { retryAfterS: 20 });
  for (let at = 0; at < 2; at++) report("remote", { retryAfterS: 1 });
  clock.advance(19_999);
  assert.deepEqual([health.status("m"), health.isOnlyDoubted("m")], ["probe", false]);
  clock.advance(1);
  assert.equal(health.isOnlyDoubted("m"), true);
});

test("a rate limit shows that the server can be reached, and resets the count of connection failures", () => {
  const { health, report, ejections } = watched();
  for (const kind of ["local", "local", "rate_limited", "local", "local"] as const) report(kind);
  assert.deepEqual([health.status("other"), ejections], ["healthy", []]);
  report("local");
  assert.deepEqual([health.status("other"), ejections.length], ["ejected", 1]);
});

test("a retry-after in milliseconds is kept to the millisecond", () => {
  const { health, report, clock } = watched();
  report("rate_limited", { retryAfterS: 0.251 });
  assert.equal(health.restMs("m"), 251);
  clock.advance(250);
  assert.equal(health.status("m"), "ejected");
  clock.advance(1);
  assert.equal(health.status("m"), "healthy");
});

test("a refused credential ejects at once", () => {
  const { health, report, ejections } = watched();
  report("forbidden");
  assert.equal(health.status("m"), "ejected");
  assert.deepEqual(
    ejections.map(({ reason }) => reason),
    ["forbidden"],
  );
});

for (const status of [404, 405]) {
  test(`${status} is counted, ejects no upstream, and is logged once a minute with the request`, async (t) => {
    const lost = await httpServer(t, (_request, response) => {
      response.writeHead(status, { "content-type": "text/html" }).end("<h1>nginx</h1>");
    });
    const clock = new FakeClock();
    const { dispatcher, warnings } = rig(t, [upstream("lost", `${lost}/v1`, { health: STRICT })], clock);
    const once = (more = {}) => dispatcher.run(ask([route("lost")], { ...ONE_JSON, ...more }));
    await once({ pathSuffix: "/input_tokens" });
    assert.equal(warnings.length, 0, "an upstream need not have side endpoints");
    for (let i = 0; i < 12; i++) assert.equal(refusalIn(await once()).cause, "upstream_unavailable");
    const [state] = dispatcher.report();
    assert.deepEqual([state?.health, state?.outcomes.not_found, state?.outcomes.remote], ["healthy", 12, 0]);
    assert.deepEqual(
      warnings.map(({ asked, status: answered }) => [asked, answered]),
      [[`POST ${lost}/v1/chat/completions`, status]],
    );
    clock.advance(STRICT.windowMs);
    assert.equal(dispatcher.report()[0]?.outcomes.not_found, 0, "only outcomes within the window count");
    clock.advance(30_000);
    await once();
    assert.equal(warnings.length, 2);
    dispatcher.replace(byName([upstream("lost", `${lost}/v2`, { health: STRICT })]));
    await once();
    assert.equal(warnings[2]?.asked, `POST ${lost}/v2/chat/completions`, "a new configuration is warned about at once");
  });
}

const ONE_JSON = { stream: false, deadlineMs: 1_000_000, owner: { account: "a", key: "a1" } } as const;
const HOT = { ...HEALTH, failures: 2, coolDownMs: 4_000 };

test("an ejected upstream is passed over, a probe returns it, and its failures cost no client an answer", async (t) => {
  let broken = true;
  let asked = 0;
  const bad = await httpServer(t, (_request, response) => {
    asked += 1;
    response.writeHead(broken ? 503 : 200, { "content-type": "application/json" }).end("{}");
  });
  const good = await replying(t, jsonReply());
  const clock = new FakeClock();
  const upstreams = [upstream("bad", bad, { health: HOT }), upstream("good", good)];
  const { dispatcher, turns } = rig(t, upstreams, clock);
  const routes = [route("bad"), route("good", { priority: 1 })];
  const once = async () => {
    const result = await dispatcher.run(ask(routes, ONE_JSON));
    assertAnswered(result);
    return result.attempts.map(({ upstream: name }) => name).join(" ");
  };
  assert.deepEqual([await once(), await once(), await once()], ["bad good", "bad good", "good"]);
  assert.deepEqual(turns, ["bad: failures"]);
  const [state] = dispatcher.report();
  assert.equal(state?.health, "ejected");
  assert.equal(state?.restMs, 4_000);
  assert.deepEqual({ ...state?.outcomes }, { ok: 0, local: 0, remote: 2, rate_limited: 0, forbidden: 0, not_found: 0 });
  clock.advance(4_000);
  assert.equal(await once(), "bad good", "the probe fails");
  clock.advance(4_000);
  assert.equal(await once(), "good", "the rest is doubled");
  clock.advance(4_000);
  broken = false;
  assert.deepEqual([await once(), await once()], ["bad", "bad"]);
  assert.deepEqual(turns, ["bad: failures", "bad: failures", "bad: returned"]);
  assert.equal(asked, 5);
});

test("only one request probes while the others go to another upstream", async (t) => {
  const bad = await heldServer(t);
  const clock = new FakeClock();
  const upstreams = [upstream("bad", bad.base, { health: HOT }), upstream("good", await replying(t, jsonReply()))];
  const { dispatcher } = rig(t, upstreams, clock);
  const routes = [route("bad"), route("good", { priority: 1 })];
  for (let at = 0; at < 2; at++) {
    const running = dispatcher.run(ask(routes, ONE_JSON));
    (await bad.next()).answer(500);
    assertAnswered(await running);
  }
  clock.advance(4_000);
  const probing = dispatcher.run(ask(routes, ONE_JSON));
  const probe = await bad.next();
  for (let at = 0; at < 3; at++) {
    const result = await dispatcher.run(ask(routes, ONE_JSON));
    assertAnswered(result);
    assert.equal(result.route.upstream, "good");
  }
  probe.answer();
  const result = await probing;
  assertAnswered(result);
  assert.equal(result.route.upstream, "bad");
});

test("the last route of a model is used even if it is ejected, and the one with the shortest rest comes first", async (t) => {
  const clock = new FakeClock();
  const bad = await replying(t, jsonReply("{}", "500 Oops"));
  const upstreams = [
    upstream("east", bad, { health: { ...HOT, failures: 1, coolDownMs: 9_000 } }),
    upstream("west", bad, { health: { ...HOT, failures: 1 } }),
  ];
  const { dispatcher, turns } = rig(t, upstreams, clock);
  const routes = [route("east"), route("west", { priority: 1 })];
  refusalIn(await dispatcher.run(ask(routes, ONE_JSON)));
  assert.deepEqual(turns, ["east: failures", "west: failures"]);
  const again = await dispatcher.run(ask(routes, ONE_JSON));
  assert.deepEqual(
    again.attempts.map(({ upstream: name }) => name),
    ["west", "west"],
    "an upstream is used although all are ejected, and retried once",
  );
});

test("a request that no route can carry is refused for that reason even if upstreams are ejected, with the refusal of a healthy one", async (t) => {
  const bad = await replying(t, jsonReply("{}", "500 Oops"));
  const upstreams = [
    upstream("bad", bad, { health: { ...HOT, failures: 1 } }),
    upstream("good", await replying(t, jsonReply())),
  ];
  const { dispatcher, turns } = rig(t, upstreams, new FakeClock());
  refusalIn(await dispatcher.run(ask([route("bad")], ONE_JSON)));
  assert.deepEqual(turns, ["bad: failures"]);
  const refusedBy = (name: string) => refusal("untranslatable", { param: name });
  const encodeFor = (to: Route) => refusedBy(to.upstream);
  const refusedOf = async (...names: string[]) => {
    const routes = names.map((name, priority) => route(name, { priority }));
    return refusalIn(await dispatcher.run(ask(routes, { ...ONE_JSON, encodeFor })));
  };
  assert.deepEqual(await refusedOf("bad"), refusedBy("bad"));
  assert.deepEqual(await refusedOf("bad", "good"), refusedBy("good"));
});

test("a request that failed at an upstream ejected since does not go back to it while another is healthy but full", async (t) => {
  const west = await heldServer(t);
  const upstreams = [
    upstream("east", await replying(t, jsonReply("{}", "500 Oops")), { health: { ...HOT, failures: 1 } }),
    upstream("west", west.base, { maxConcurrency: 1 }),
  ];
  const { dispatcher } = rig(t, upstreams, new FakeClock());
  const running = dispatcher.run(ask([route("west")], ONE_JSON));
  const held = await west.next();
  const failed = await dispatcher.run(ask([route("east"), route("west", { priority: 1 })], ONE_JSON));
  assert.equal(refusalIn(failed).cause, "upstream_unavailable");
  assert.equal(failed.attempts.length, 1);
  held.answer();
  assertAnswered(await running);
});

test("the gauge of an upstream is 0 until a probe is answered, and returns to 1 after a while without requests", async (t) => {
  const bad = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher } = rig(t, [upstream("bad", bad.base, { health: { ...HOT, failures: 1 } })], clock);
  const metrics = createMetrics();
  const gauge = async () => {
    measureUpstreams(dispatcher.report(), metrics);
    return /^tollgate_upstream_healthy\{upstream="bad"\} (\d)$/m.exec((await metrics.page()).body)?.[1];
  };
  assert.equal(await gauge(), "1");
  const failing = dispatcher.run(ask([route("bad")], { stream: false }));
  for (let tries = 0; tries < 2; tries++) (await bad.next()).answer(500);
  refusalIn(await failing);
  assert.equal(await gauge(), "0");
  clock.advance(4_000);
  assert.deepEqual([dispatcher.report()[0]?.health, await gauge()], ["probe", "0"]);
  clock.advance(HOT.coolDownMaxMs - 1);
  assert.deepEqual([dispatcher.report()[0]?.health, await gauge()], ["probe", "0"]);
  clock.advance(1);
  assert.deepEqual([dispatcher.report()[0]?.health, await gauge()], ["probe", "1"]);
  const probing = dispatcher.run(ask([route("bad")], { stream: false }));
  const probe = await bad.next();
  assert.equal(await gauge(), "0", "other requests use another upstream during the probe");
  probe.answer();
  assertAnswered(await probing);
  assert.equal(await gauge(), "1");
});

test("a client's own 4xx never ejects, however many there are", async (t) => {
  const bad = await replying(t, jsonReply('{"error":{"message":"prompt is too long"}}', "400 Bad"));
  const { dispatcher, turns } = rig(t, [upstream("east", bad, { health: { ...HOT, failures: 1 } })]);
  for (let at = 0; at < 20; at++) {
    const result = await dispatcher.run(ask([route("east")], { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_rejected");
  }
  assert.deepEqual(turns, []);
  assert.equal(dispatcher.report()[0]?.health, "healthy");
});

test("401 and 402 warn the operator and cool the upstream down", async (t) => {
  for (const status of ["401 No", "402 Pay"]) {
    const bad = await replying(t, jsonReply("{}", status));
    const upstreams = [upstream("bad", bad), upstream("good", await replying(t, jsonReply()))];
    const { dispatcher, turns, warnings } = rig(t, upstreams);
    const routes = [route("bad"), route("good", { priority: 1 })];
    for (let at = 0; at < 3; at++) assertAnswered(await dispatcher.run(ask(routes, { stream: false })));
    assert.deepEqual(turns, ["bad: forbidden"]);
    assert.deepEqual(
      warnings.map(({ kind, upstream: name }) => [kind, name]),
      [["forbidden", "bad"]],
    );
  }
});

test("a 4xx for an exhausted quota is reported to the operator; a 5xx stays a server failure, whatever its body says", async (t) => {
  const said = JSON.stringify({ error: { message: "no", code: "insufficient_quota" } });
  for (const [status, cause, kind] of [
    ["429 No", "upstream_forbidden", "forbidden"],
    ["503 Away", "upstream_unavailable", undefined],
  ] as const) {
    const { dispatcher, warnings } = rig(t, [upstream("bad", await replying(t, jsonReply(said, status)))]);
    assert.equal(refusalIn(await dispatcher.run(ask([route("bad")], { stream: false }))).cause, cause);
    assert.equal(warnings[0]?.kind, kind);
  }
});

test("consecutive 403s eject the upstream with a warning, and an answer in between resets the count", async (t) => {
  const denied = jsonReply('{"error":{"message":"Forbidden"}}', "403 No");
  const replies = [denied, denied, jsonReply(), denied, denied, denied];
  const east = await rawServer(t, ({ socket }) => socket.end(replies.shift() ?? denied));
  const upstreams = [
    upstream("east", east, { health: { ...HOT, failures: 3 } }),
    upstream("west", await replying(t, jsonReply())),
  ];
  const { dispatcher, turns, warnings } = rig(t, upstreams);
  const routes = [route("east"), route("west", { priority: 1 })];
  for (let at = 0; at < 5; at++) assertAnswered(await dispatcher.run(ask(routes, { stream: false })));
  assert.deepEqual(turns, []);
  assertAnswered(await dispatcher.run(ask(routes, { stream: false })));
  assert.deepEqual(turns, ["east: forbidden"]);
  assert.deepEqual(
    warnings.map(({ kind, upstream: name }) => [kind, name]),
    [["forbidden", "east"]],
  );
});

test("a refusal that depends on the content of one request does not affect the upstream's health, whatever its status", async (t) => {
  const said = [
    ["403 No", { message: "Forbidden", code: "content_policy_violation" }, "upstream_rejected"],
    ["403 No", { message: "Your chosen model requires moderation and your input was flagged" }, "upstream_rejected"],
    [
      "429 Slow",
      { message: "Request too large for m on tokens per min (TPM): Limit 30000, Requested 61337." },
      "upstream_rate_limit",
    ],
  ] as const;
  for (const [status, error, cause] of said) {
    const east = await replying(t, jsonReply(JSON.stringify({ error }), status, "retry-after: 120\r\n"));
    const { dispatcher, turns } = rig(t, [upstream("east", east, { health: { ...HOT, failures: 1 } })]);
    for (let at = 0; at < 3; at++) {
      const refused = refusalIn(await dispatcher.run(ask([route("east")], { stream: false })));
      assert.equal(refused.cause, cause);
    }
    assert.deepEqual(turns, []);
    const [report] = dispatcher.report();
    assert.deepEqual([report?.health, report?.limitedModels.size], ["healthy", 0]);
  }
});

for (const name of ["retry-after-ms", "x-ms-retry-after-ms"]) {
  test(`after a 429 with ${name} the upstream is used again after those milliseconds, not after the seconds of retry-after`, async (t) => {
    let asked = 0;
    const east = await httpServer(t, (_request, response) => {
      asked += 1;
      const headers = { "content-type": "application/json", "retry-after": "1", [name]: "40" };
      response
        .writeHead(asked === 1 ? 429 : 200, asked === 1 ? headers : { "content-type": "application/json" })
        .end("{}");
    });
    const west = await replying(t, jsonReply());
    const clock = new FakeClock();
    const { dispatcher } = rig(t, [upstream("east", east, { health: HOT }), upstream("west", west)], clock);
    const routes = [
      { ...route("east"), priority: 0 },
      { ...route("west"), priority: 1 },
    ];
    const asking = () => dispatcher.run(ask(routes, ONE_JSON));
    assert.equal((await asking()).attempts.at(-1)?.upstream, "west");
    clock.advance(39);
    assert.equal((await asking()).attempts[0]?.upstream, "west", "the upstream is still resting");
    clock.advance(1);
    assert.equal((await asking()).attempts[0]?.upstream, "east");
    assert.equal(asked, 2);
  });
}

test("a 503 with retry-after is not retried earlier, and the client gets the time to wait", async (t) => {
  let asked = 0;
  const bad = await httpServer(t, (_request, response) => {
    asked += 1;
    response.writeHead(503, { "content-type": "application/json", "retry-after": "9" }).end("{}");
  });
  const { dispatcher } = rig(t, [upstream("east", bad)]);
  const result = await dispatcher.run(ask([route("east")], { stream: false }));
  assert.equal(asked, 1);
  assert.equal(answerOf(refusalIn(result)).retryAfterS, 9);
});

test("a stream that breaks off after its beginning counts as a failure, and so does a refused connection", async (t) => {
  const cut = await httpServer(t, (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: a\n\n", () => response.destroy());
  });
  const upstreams = [upstream("cut", cut), upstream("dead", await closedPort(t))];
  const { dispatcher } = rig(t, upstreams);
  const result = await dispatcher.run(ask([route("cut")]));
  assertAnswered(result);
  const { promise, resolve } = Promise.withResolvers<void>();
  result.body?.consume({ data() {}, end: resolve, error: () => resolve() });
  await promise;
  await dispatcher.run(ask([route("dead")]));
  const counts = dispatcher.report().map(({ outcomes }) => [outcomes.ok, outcomes.local, outcomes.remote]);
  assert.deepEqual(counts, [
    [1, 1, 0],
    [0, 2, 0],
  ]);
});

test("requests queued at an upstream that is ejected wait for another one, although its slots are free", async (t) => {
  const east = await heldServer(t);
  const west = await heldServer(t);
  const one = { maxConcurrency: 1, queue: { max: 5, waitMs: 5_000 }, health: { ...HOT, failures: 1 } };
  const upstreams = [upstream("east", east.base, one), upstream("west", west.base, one)];
  const { dispatcher } = rig(t, upstreams, new FakeClock());
  const first = dispatcher.run(ask([route("east")], ONE_JSON));
  const atWest = dispatcher.run(ask([route("west")], ONE_JSON));
  const [heldEast, heldWest] = [await east.next(), await west.next()];
  const waiting = dispatcher.run(ask([route("east"), route("west")], ONE_JSON));
  heldEast.answer(500, { "retry-after": "1" });
  refusalIn(await first);
  assert.deepEqual(
    dispatcher.report().map(({ inFlight, queued }) => [inFlight, queued]),
    [
      [0, 0],
      [1, 1],
    ],
  );
  heldWest.answer();
  (await west.next()).answer();
  const result = await waiting;
  assertAnswered(result);
  assert.equal(result.route.upstream, "west");
  assertAnswered(await atWest);
});
