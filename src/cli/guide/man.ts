/** The manual page, `tollgate(1)`, in roff with the man macros (man(7)), generated from the tree of commands. */
import { allCommands, examplesOf, type GuideCommand, type GuideOption } from "./guide.ts";

/** @param version the version of the program. */
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
  ["TOLLGATE_ADMIN_URL", "The admin address of the gateway, as a URL or unix:PATH; --admin takes precedence."],
  ["TOLLGATE_ADMIN_TOKEN", "The gateway's admin token; default: the file admin-token in the data folder."],
  ["TOLLGATE_DATA", "The data folder that holds the admin token."],
  [
    "TOLLGATE_LISTEN, TOLLGATE_ADMIN",
    "Addresses of the demonstration, which `serve` runs if there is no configuration file.",
  ],
  ["NO_COLOR", "No colors, even on a terminal."],
] as const;

const STATUS = [
  ["0", "Done."],
  ["1", "Refused, or no gateway answered; the reason is on standard error."],
  ["2", "Wrong usage: no such command, option or value."],
] as const;

function command({ path, values, description, options }: GuideCommand): string[] {
  const words = [...path, ...values.map((name) => `<${name}>`)].join(" ");
  return [".SS", plain(words), plain(capital(description)), ...options.flatMap(option)];
}

function option({ flags, description, choices, standard, mandatory }: GuideOption): string[] {
  const more = [
    ...(choices.length > 0 ? [`one of ${choices.join(", ")}`] : []),
    ...(standard === undefined ? [] : [`default: ${standard}`]),
    ...(mandatory ? ["required"] : []),
  ];
  const words = more.length === 0 ? description : `${description} (${more.join("; ")})`;
  return [".TP", `.B ${plain(flags)}`, plain(capital(words))];
}

const example = (line: string): string[] => [".PP", ".nf", plain(line), ".fi"];
/** Capitalizes the first letter, except of a value that must be typed exactly, such as `embedded:DIR`. */
const capital = (words: string): string => {
  const first = /^[a-z]+[ ,;]/.test(words) ? words.charAt(0).toUpperCase() : words.charAt(0);
  return `${first}${words.slice(1)}.`.replace(/\.\.$/, ".");
};

/** Escapes text for roff: hyphens stay hyphens, and no line begins with a macro. */
function plain(text: string): string {
  const escaped = text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return escaped.replace(/^([.'])/, "\\&$1");
}
