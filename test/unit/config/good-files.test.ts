import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { demoConfig, formatProblem, loadConfig } from "../../../src/config/config.ts";
import { readDocument } from "../../../src/config/document.ts";
import { NOTICE_KINDS, type Settings } from "../../../src/values/settings.ts";

const ENV = {
  TOLLGATE_ADMIN_TOKEN: "admin-token-0123456789",
  TOLLGATE_SEALING_KEY: "0123456789abcdef0123456789abcdef",
  EAST_KEY: "east-credential",
  WEST_KEY: "west-credential",
  TOLLGATE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "w").toString("base64")}`,
};

function settingsOf(text: string): Settings {
  const loaded = loadConfig({ text, env: ENV });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return loaded.settings;
}

const example = readFileSync(new URL("../../../tollgate.example.yaml", import.meta.url), "utf8");
const least = `
upstreams: {east: {protocol: chat, base_url: "https://models.example/v1/"}, west: {protocol: responses, base_url: "http://[::1]:1"}}
plans: {free: {}}
models:
  big-1:
    plans: [free]
    price: {input: "0.000000003", output: 10}
    context_tokens: 4000
    capabilities: {vision: false, efforts: []}
    routes: [{upstream: east}, {upstream: west, capabilities: {vision: true, max_tokens_field: max_completion_tokens}}]
groups: {use: {kind: pay_per_use, models: ["*"]}}
`;

test("the example file loads and has the expected settings", () => {
  const settings = settingsOf(example);
  assert.equal(settings.adminToken?.reveal(), ENV.TOLLGATE_ADMIN_TOKEN);
  assert.equal(settings.sealingKeys[0]?.reveal(), ENV.TOLLGATE_SEALING_KEY);
  assert.deepEqual(settings.trustProxy, ["127.0.0.1/32", "unix"]);
  const big = settings.catalog.models.get("big-1");
  assert.equal(big?.price.cachedInput, 125_000_000n);
  assert.equal(big?.price.cacheWrite, 1_562_500_000n);
  assert.equal(big?.price.tiers.get("priority")?.cacheWrite1h, 5_000_000_000n);
  assert.equal(big?.price.tiers.get("priority")?.aboveTokens?.[0]?.prices.cacheWrite, 6_250_000_000n);
  assert.equal(big?.price.aboveTokens[0]?.prices.cachedInput, 250_000_000n);
  assert.deepEqual(big?.toolCalls, { held: 10, max: 50 });
  assert.equal(big?.price.tools.get("web_search"), 10_000_000n);
  assert.equal(big?.price.tools.get("search_parameters"), 25_000_000n);
  assert.equal(big?.price.tools.get("provider"), 0n);
  assert.equal(big?.price.tiers.get("priority+us")?.output, 22_000_000_000n);
  assert.deepEqual(big?.routes[0]?.passedMembers, { all: false, names: new Set(["documents"]) });
  assert.deepEqual(big?.routes[0]?.answersAs, ["big-1-turbo"]);
  assert.deepEqual(big?.routes[1]?.passedMembers, { all: false, names: new Set() });
  assert.equal(big?.routes[0]?.cost.output, 8_000_000_000n);
  assert.equal(big?.routes[0]?.upstreamModel, "big-1-2026-08");
  assert.equal(big?.routes[1]?.cost, big?.price);
  assert.equal(big?.routes[1]?.capabilities.thinking, "adaptive");
  assert.equal(settings.catalog.cards.get("day")?.quotaSpend, 5_000_000_000n);
  assert.equal(settings.catalog.cards.get("month")?.starts, "after_previous");
  assert.equal(settings.catalog.cards.get("month")?.quotaSpend, undefined);
  assert.equal(settings.catalog.groups.get("big")?.multiplier, 1_000_000n);
});

test("the values that the example calls defaults are the defaults", () => {
  const bare = settingsOf(least);
  const said = settingsOf(example);
  const keys = [
    "listen",
    "admin",
    "journal",
    "leftAllowanceNano",
    "bodyBytesMax",
    "drain",
    "heartbeatMs",
    "idempotency",
    "log",
    "overload",
    "workers",
  ] as const;
  for (const key of keys) {
    assert.deepEqual(bare[key], said[key], key);
  }
  assert.equal(bare.upstreamUnavailableStatus, 403);
  assert.deepEqual(bare.upstreams.get("east")?.timeouts, said.upstreams.get("east")?.timeouts);
  assert.deepEqual(bare.upstreams.get("east")?.timeouts, {
    connectMs: 3_000,
    firstByteMs: 60_000,
    wholeMs: 600_000,
    idleMs: 120_000,
    totalMs: 1_200_000,
  });
  assert.equal(bare.catalog.groups.get("use")?.limits.concurrency, 100);
});

test("some defaults depend on other values", () => {
  const settings = settingsOf(least);
  const big = settings.catalog.models.get("big-1");
  assert.equal(settings.upstreams.get("east")?.baseUrl, "https://models.example/v1");
  assert.equal(settings.upstreams.get("west")?.baseUrl, "http://[::1]:1");
  assert.equal(settings.catalog.defaultPlan, "free");
  assert.equal(big?.maxOutputTokens, 4_000, "never above the context");
  assert.equal(big?.defaultOutputTokens, 4_000, "never above the maximum");
  assert.equal(big?.price.cachedInput, 3n);
  assert.equal(big?.price.cacheWrite, 4n, "3.75 rounded up");
  assert.equal(big?.price.cacheWrite1h, 6n);
  const [east, west] = big?.routes ?? [];
  assert.deepEqual([east?.capabilities.vision, west?.capabilities.vision], [false, true]);
  assert.deepEqual([east?.capabilities.stop, west?.capabilities.stop], ["native", "emulate"]);
  assert.deepEqual([east?.capabilities.efforts, west?.capabilities.efforts], [[], []]);
  assert.equal(west?.capabilities.maxTokensField, "max_completion_tokens");
});

test("notices are sent to the configured URL, signed with one or several secrets, of all kinds unless some are named", () => {
  const secret = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;
  const of = (section: string) => settingsOf(`${least}notices: ${section}\n`).notices;
  const bare = of(`{url: "https://hooks.example/in?for=us", secrets: [${secret}]}`);
  assert.equal(bare?.url.reveal(), "https://hooks.example/in?for=us");
  assert.deepEqual(
    bare?.secrets.map((one) => one.reveal()),
    [secret],
  );
  assert.deepEqual([...(bare?.kinds ?? [])], [...NOTICE_KINDS]);
  assert.deepEqual([bare?.balanceBelowNano, bare?.cardEndsWithinMs], [undefined, 86_400_000]);
  const local = of(
    `{url: "http://[::1]:9000/x", secrets: [${secret}, ${secret}], kinds: [books_off], balance_below: 5, card_ends_within: 7d}`,
  );
  assert.deepEqual([...(local?.kinds ?? [])], ["books_off"]);
  assert.deepEqual([local?.secrets.length, local?.balanceBelowNano], [2, 5_000_000_000]);
  assert.equal(local?.cardEndsWithinMs, 7 * 86_400_000);
  assert.equal(settingsOf(least).notices, undefined);
  const plain = of(`{url: "http://hooks.example/x", secrets: [${secret}], allow_http: true}`);
  assert.equal(plain?.url.reveal(), "http://hooks.example/x");
});

test("an upstream says how its prompt cache is treated, and a model or route overrides it", () => {
  const cachesOf = (upstream: string, model: string, route: string) => {
    const text = least
      .replace('"http://[::1]:1"', `"http://[::1]:1", ${upstream}`)
      .replace("{vision: false,", `{${model}vision: false,`)
      .replace("{vision: true,", `{${route}vision: true,`);
    return settingsOf(text)
      .catalog.models.get("big-1")
      ?.routes.map((one) => one.capabilities.promptCache);
  };
  const [auto, client] = ["prompt_cache: auto", "prompt_cache: client"];
  assert.deepEqual(cachesOf(auto, "", ""), ["auto", "auto"]);
  assert.deepEqual(cachesOf(client, "", ""), ["auto", "client"]);
  assert.deepEqual(cachesOf(client, `${auto}, `, ""), ["auto", "auto"]);
  assert.deepEqual(cachesOf(auto, `${client}, `, ""), ["client", "client"]);
  assert.deepEqual(cachesOf(client, `${client}, `, `${auto}, `), ["client", "auto"]);
});

test("the held tokens of an image or a file have a minimum and a maximum, and either may be left out", () => {
  const tokens = (text: string) =>
    settingsOf(least.replace("    context_tokens", `    media_tokens: ${text}\n    context_tokens`)).catalog.models.get(
      "big-1",
    )?.mediaTokens;
  assert.deepEqual(tokens("{}"), { image: 1_600, file: 3_000, imageMax: undefined, fileMax: undefined });
  assert.deepEqual(tokens("{image_max: 800, file_max: 9}"), { image: 800, file: 9, imageMax: 800, fileMax: 9 });
  assert.deepEqual(tokens("{image: 5, image_max: 5}"), { image: 5, file: 3_000, imageMax: 5, fileMax: undefined });
});

test("a cost may be zero and needs no steps", () => {
  const price = `{input: "2", cached_input: "1", output: 10, tools: {web_search: "0.01"}, options: {provider: "0"},
      tiers: {flex: {input: "1", cached_input: "1", output: "5", above_tokens: [{tokens: 9, input: "3", output: "9"}]},
      free: {input: "0", output: "0"}}, above_tokens: [{tokens: 9, input: "3", cached_input: "2", output: "9"}]}`;
  const cost = `{input: "1", cached_input: "1", output: "2", tools: {web_search: "0", provider: "0"}, above_tokens: [],
      tiers: {flex: {input: "0", output: "0", above_tokens: []}, free: {input: "0", output: "0"}}}`;
  const { catalog } = settingsOf(
    least
      .replace('{input: "0.000000003", output: 10}', price)
      .replace("[{upstream: east}", `[{upstream: east, cost: ${cost}}`),
  );
  const big = catalog.models.get("big-1");
  assert.equal(
    big?.price.tiers.get("flex")?.aboveTokens?.[0]?.prices.cachedInput,
    3_000_000_000n,
    "the price is that of its tier",
  );
  assert.deepEqual(
    [...(big?.routes[0]?.cost.tools ?? [])],
    [
      ["web_search", 0n],
      ["provider", 0n],
    ],
  );
  assert.deepEqual(big?.routes[0]?.cost.aboveTokens, []);
});

test("price steps apply in the order of their tokens, however they are written", () => {
  const steps = [9, 20, 5].map((tokens) => `{tokens: ${tokens}, input: "${tokens}", output: "30"}`).join(", ");
  const price = `{input: "2", output: 10, above_tokens: [${steps}], tiers: {flex: {input: "1", output: "5", above_tokens: [${steps}]}}}`;
  const big = settingsOf(least.replace('{input: "0.000000003", output: 10}', price)).catalog.models.get("big-1");
  for (const read of [big?.price.aboveTokens, big?.price.tiers.get("flex")?.aboveTokens]) {
    assert.deepEqual(
      read?.map(({ tokens, prices }) => [tokens, prices.input]),
      [5n, 9n, 20n].map((usd) => [Number(usd), usd * 1_000_000_000n]),
    );
  }
});

test("text that rules of a model or an upstream add counts as input of the model, by the route that adds most", () => {
  const rules = (bytes: number, more = "") => `rules: [{system: {text: ${"x".repeat(bytes)}}${more}}]`;
  const added = (ofModel: string, ofEast: string, ofWest: string) => {
    const text = least
      .replace('models.example/v1/"', `models.example/v1/", ${ofEast}`)
      .replace('"http://[::1]:1"', `"http://[::1]:1", ${ofWest}`)
      .replace("    context_tokens", `    ${ofModel}\n    context_tokens`);
    return settingsOf(text).catalog.models.get("big-1")?.addedInputBytes ?? 0;
  };
  const frame = added("", rules(1), "") - 1;
  assert.ok(frame >= 2, "the frame has at least two quotes");
  assert.equal(added("", "", ""), 0);
  assert.equal(added("", "", rules(500)), 500 + frame);
  assert.equal(added("", rules(300), rules(500)), 500 + frame);
  assert.equal(added(rules(200), rules(300), rules(500)), 700 + 2 * frame);
  assert.equal(
    added(rules(900, ", protocol: chat"), rules(300), rules(500)),
    1_200 + 2 * frame,
    "the chat rule applies to east",
  );
});

test("an IPv6 address is not covered by all of IPv4, and port 0 is a different port each time", () => {
  for (const [listen, admin] of [
    ["0.0.0.0:8788", "[::1]:8788"],
    ["0.0.0.0:0", "127.0.0.1:0"],
  ]) {
    const settings = settingsOf(`listen: "${listen}"\nadmin: "${admin}"\n${least}`);
    assert.equal(settings.listen.kind, "tcp");
  }
});

test("a site with another port, address or name than the listener is accepted, also if only the network could tell them apart", () => {
  const others = [
    ["127.0.0.1:8787", "http://127.0.0.1:3000"],
    ["127.0.0.1:8787", "http://127.0.0.2:8787"],
    ["0.0.0.0:8787", "http://[::1]:8787"],
    ["0.0.0.0:8787", "http://10.0.0.7:8787"],
    ["0.0.0.0:8787", "http://site.example:8787"],
    ["10.0.0.7:8787", "http://0.0.0.0:8787"],
    ["127.0.0.1:80", "https://127.0.0.1"],
    ["unix:/run/tollgate.sock", "http://127.0.0.1:8787"],
  ];
  for (const [listen, site] of others) {
    assert.equal(settingsOf(`listen: "${listen}"\nsite: ${site}\n${least}`).site, site);
  }
});

test("a dollar sign is kept in rules, in names of members, and in a credential that is no variable's name", () => {
  const rules = '[{set: {user: $USER_ID}}, {default: {"stop": [$END]}}, {system: {text: $PRICE}}]';
  const east = `api_key: "$ecret", pass_members: [$SCHEMA], rules: ${rules}`;
  const { catalog, upstreams } = settingsOf(least.replace("east: {protocol: chat,", `east: {protocol: chat, ${east},`));
  assert.equal(upstreams.get("east")?.apiKey?.reveal(), "$ecret");
  const route = catalog.models.get("big-1")?.routes[0];
  assert.deepEqual(route?.passedMembers?.names, new Set(["$SCHEMA"]));
  const said = JSON.stringify(route?.rules, (_, value) => (value instanceof Map ? [...value] : value));
  for (const text of ["$USER_ID", "$END", "$PRICE"]) assert.ok(said.includes(text), text);
});

test("a server's own tools and tiers may have a price, and so may each member that buys an extra", () => {
  const tiers = "reserved fast+us fast+fast uk turbo+uk audio+image image+audio flex+pro+audio".split(" ");
  const tools = "web_search web_search_premium x_search ocr link_reader web_search_options enable_search".split(" ");
  const priced = (names: readonly string[], price: string) => names.map((name) => `"${name}": ${price}`).join(", ");
  const price = `{input: "1", output: 10, tiers: {${priced(tiers, '{input: "1", output: "1"}')}},
      tools: {${priced(tools, '"0.01"')}}, options: {n: "0", best_of: "0", lora_path: "0", access_programs: "0"}}`;
  const read = settingsOf(least.replace('{input: "0.000000003", output: 10}', price)).catalog.models.get(
    "big-1",
  )?.price;
  assert.equal(read?.tiers.size, tiers.length);
  assert.equal(read?.tools.size, tools.length + 4);
});

test("the demo configuration loads, with or without /v1 in the simulator's address", () => {
  for (const upstreamUrl of ["http://127.0.0.1:9000", "http://127.0.0.1:9000/v1/"]) {
    const settings = settingsOf(demoConfig({ upstreamUrl, dataDir: "./data: #1" }));
    assert.deepEqual(settings.store, { kind: "embedded", dir: "./data: #1" });
    assert.deepEqual([...settings.catalog.models.keys()], ["demo-chat", "demo-messages", "demo-responses"]);
    assert.deepEqual([...settings.catalog.cards.keys()], ["day", "week", "month"]);
    for (const upstream of settings.upstreams.values()) assert.equal(upstream.baseUrl, "http://127.0.0.1:9000/v1");
  }
});

test("JSON is read as YAML, aliases are expanded, and keys of Object.prototype are ordinary names", () => {
  settingsOf(JSON.stringify({ ...JSON.parse('{"plans":{"constructor":{}}}'), ...minimal("constructor") }));
  settingsOf(`plans: {p: {}}\n${least.replace("plans: {free: {}}\n", "").replace("plans: [free]", "plans: &p [p]")}`);
});

test("a hundred aliases and 32 levels are accepted, and one more of either is refused", () => {
  const faultsOf = (text: string) => readDocument(text).problems.list("f", () => ({ line: 1, column: 1 })).length;
  const aliases = (count: number) => `a: &x 1\nb: [${Array(count).fill("*x").join(", ")}]\n`;
  const nested = (depth: number) => `a: ${"[".repeat(depth)}${"]".repeat(depth)}\n`;
  assert.deepEqual([100, 101].map(aliases).map(faultsOf), [0, 1]);
  assert.deepEqual([32, 33].map(nested).map(faultsOf), [0, 1]);
});

function minimal(plan: string): object {
  return {
    upstreams: { east: { protocol: "chat", base_url: "https://models.example/v1" } },
    models: {
      toString: {
        plans: [plan],
        price: { input: "1", output: "1" },
        context_tokens: 10,
        routes: [{ upstream: "east" }],
      },
    },
    groups: { g: { kind: "pay_per_use", models: ["toString"] } },
  };
}

test("the catalog's version depends on its content and not on its spelling", () => {
  const version = (text: string): string => settingsOf(text).catalog.version;
  assert.match(version(least), /^[0-9a-f]{12}$/);
  assert.equal(version(`${least}heartbeat: 11s\n# a comment\n`), version(least));
  assert.equal(
    version(least.replace('{input: "0.000000003", output: 10}', '{output: "10.0", input: "0.000000003"}')),
    version(least),
  );
  assert.notEqual(version(least.replace("output: 10}", "output: 11}")), version(least));
});

test("every form of the store's address is read", () => {
  const shared = `sealing_keys: [${ENV.TOLLGATE_SEALING_KEY}]\n${least}`;
  const storeOf = (store: string) => settingsOf(`store: ${store}\n${shared}`).store;
  const nodes = [
    { host: "10.0.0.1", port: 7000 },
    { host: "::1", port: 6379 },
  ];
  const single = storeOf("rediss://user:p%40ss@redis.example:6380/2");
  assert.ok(single.kind === "redis" && single.url.reveal() === "rediss://user:p%40ss@redis.example:6380/2");
  const cluster = storeOf("redis-cluster://user:p%40ss@10.0.0.1:7000,[::1]:6379");
  assert.ok(cluster.kind === "redis-cluster" && cluster.password?.reveal() === "p@ss");
  assert.deepEqual([cluster.nodes, cluster.tls, cluster.username], [nodes, undefined, "user"]);
  // The last @ separates the password from the hosts.
  const literal = storeOf("redis-cluster://user:p@ss@10.0.0.1:7000");
  assert.ok(literal.kind === "redis-cluster" && literal.password?.reveal() === "p@ss");
  const sentinel = storeOf("redis-sentinel://:word@s1:26379,s2/tollgate");
  assert.ok(sentinel.kind === "redis-sentinel" && sentinel.password?.reveal() === "word");
  assert.deepEqual([sentinel.name, sentinel.username, sentinel.sentinels[1]?.port], ["tollgate", undefined, 26_379]);
  assert.deepEqual([sentinel.tls, sentinel.sentinelPassword], [undefined, undefined]);
  for (const store of ["rediss://r", "rediss-cluster://r1,r2", "rediss-sentinel://s1,s2/tollgate"]) {
    const { kind, tls } = storeOf(store) as { kind: string; tls?: object };
    assert.deepEqual(tls, { ca: undefined, identity: undefined, serverName: undefined }, kind);
  }
  assert.deepEqual(storeOf("embedded:/var/lib/tollgate"), { kind: "embedded", dir: "/var/lib/tollgate" });
});

test("settings of a Redis store that its address cannot hold are read from `redis`", () => {
  const shared = `sealing_keys: [${ENV.TOLLGATE_SEALING_KEY}]\n${least}`;
  const storeOf = (store: string, redis: string) => settingsOf(`store: ${store}\nredis: ${redis}\n${shared}`).store;
  for (const form of ["rediss://10.0.0.1", "rediss-cluster://10.0.0.1", "rediss-sentinel://10.0.0.1/tollgate"]) {
    const store = storeOf(form, "{tls: {server_name: redis.example}}");
    assert.ok(store.kind !== "embedded" && store.tls?.serverName === "redis.example", form);
  }
  const watched = storeOf("redis-sentinel://:word@s1/tollgate", "{sentinel: {username: w, password: hush}}");
  assert.ok(watched.kind === "redis-sentinel" && watched.password?.reveal() === "word");
  assert.deepEqual([watched.sentinelUsername, watched.sentinelPassword?.reveal()], ["w", "hush"]);
});

test("the name expected in an upstream's certificate is taken from the file", () => {
  const withTls = least.replace(
    'base_url: "https://models.example/v1/"',
    'base_url: "https://10.0.0.1/v1", tls: {server_name: models.example}',
  );
  assert.equal(
    settingsOf(`store: embedded:./data\n${withTls}`).upstreams.get("east")?.tls?.serverName,
    "models.example",
  );
});
