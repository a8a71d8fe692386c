/** The manual page, `tollgate(1)`, in roff with the man macros (man(7)), written from the tree of commands. */
import { allCommands, examplesOf, type GuideCommand, type GuideOption } from "./guide.ts";

/** @param version of the program. */
export function manualPage(root: GuideCommand, version: string): string {
  const commands = allCommands(root).filter(({ path, commands: below }) => path.length > 0 && below.length === 0);
  return [
    `.TH TOLLGATE 1 "" "tollgate ${plain(version)}" "User Commands"`,
    ".SH NAME",
    "tollgate \\- a model gateway sidecar",
    ".SH SYNOPSIS",
    ".B tollgate",
    "[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]",
    ".SH DESCRIPTION",
    plain(root.description),
    ".SH OPTIONS",
    ...root.options.flatMap(option),
    ".SH COMMANDS",
    ...commands.flatMap(command),
    ".SH EXAMPLES",
    ...allCommands(root).flatMap(({ path }) => examplesOf(path).flatMap(example)),
    ".SH ENVIRONMENT",
    ...ENVIRONMENT.flatMap(([name, words]) => [".TP", `.B ${plain(name)}`, plain(words)]),
    ".SH EXIT STATUS",
    ...STATUS.flatMap(([status, words]) => [".TP", `.B ${status}`, plain(words)]),
    "",
  ].join("\n");
}

const ENVIRONMENT = [
  [
    "TOLLGATE_ADMIN_URL",
    "The admin address of the gateway that is asked, as a URL or unix:/path; --admin comes before it.",
  ],
  ["TOLLGATE_ADMIN_TOKEN", "Its admin token; the file admin-token in the data folder when left out."],
  ["TOLLGATE_DATA", "The data folder in which the token is looked for."],
  ["TOLLGATE_LISTEN, TOLLGATE_ADMIN", "Addresses of the demonstration, which serve runs without a configuration."],
  ["NO_COLOR", "No colours, also on a terminal."],
] as const;

const STATUS = [
  ["0", "Done."],
  ["1", "Refused, or nobody answered; the reason is on standard error."],
  ["2", "Misused: no such command, option or value."],
] as const;

function command({ path, values, description, options }: GuideCommand): string[] {
  const words = [...path, ...values.map((name) => `<${name}>`)].join(" ");
  return [".SS", plain(words), plain(capital(description)), ...options.flatMap(option)];
}

function option({ flags, description, choices, standard, mandatory }: GuideOption): string[] {
  const more = [
    ...(choices.length > 0 ? [`one of ${choices.join(", ")}`] : []),
    ...(standard === undefined ? [] : [`${standard} when left out`]),
    ...(mandatory ? ["needed"] : []),
  ];
  const words = more.length === 0 ? description : `${description} (${more.join("; ")})`;
  return [".TP", `.B ${plain(flags)}`, plain(capital(words))];
}

const example = (line: string): string[] => [".PP", ".nf", plain(line), ".fi"];
/** But for a value that is to be typed as it stands, such as `embedded:DIR`. */
const capital = (words: string): string => {
  const first = /^[a-z]+[ ,;]/.test(words) ? words.charAt(0).toUpperCase() : words.charAt(0);
  return `${first}${words.slice(1)}.`.replace(/\.\.$/, ".");
};

/** Text that roff takes for nothing else: hyphens are hyphens, no line begins a macro. */
function plain(text: string): string {
  const escaped = text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return escaped.replace(/^([.'])/, "\\&$1");
}
