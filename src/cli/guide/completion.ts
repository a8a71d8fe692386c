/**
 * Shell completion for bash, zsh and fish, generated from the tree of commands. Libraries for it (@bomb.sh/tab,
 * omelette) start the program at each key press, which takes a second. A script that contains the commands is instant.
 */
import { allCommands, type GuideCommand, type GuideOption } from "./guide.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** The completion script for a shell. */
export function completionScript(shell: Shell, root: GuideCommand): string {
  return { bash, zsh, fish }[shell](root);
}

const HEADING = "# Completion of tollgate, written by `tollgate completion`.\n";
const HELP: GuideOption = {
  flags: "-h, --help",
  long: "--help",
  description: "display help for command",
  choices: [],
  standard: undefined,
  takesValue: false,
  mandatory: false,
};

/** The options of a command: its own, the program's, and help. */
const optionsAt = (root: GuideCommand, command: GuideCommand): readonly GuideOption[] => [
  ...new Set([...command.options, ...root.options, HELP]),
];

const at = ({ path }: GuideCommand): string => path.join(" ");
const isPath = ({ flags }: GuideOption): boolean => /<(?:file|dir)>$/.test(flags);
const single = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Values of options and words of commands, as two `case` statements that work in both bash and zsh. */
function cases(root: GuideCommand): { readonly steps: string; readonly values: string; readonly words: string } {
  const commands = allCommands(root);
  const steps = commands.flatMap((command) => command.commands.map((child) => `"${at(command)}:${child.path.at(-1)}"`));
  const values = commands.flatMap((command) =>
    optionsAt(root, command)
      .filter(({ takesValue }) => takesValue)
      .map((option) => {
        const offered = isPath(option) ? "files=1" : `words=${single(option.choices.join(" "))}`;
        return `    "${at(command)}:${option.long}") ${offered}; return ;;\n`;
      }),
  );
  const words = commands.map((command) => {
    const children = command.commands.map(({ path }) => path.at(-1) as string);
    const offered = [...children, ...command.choices, ...optionsAt(root, command).map(({ long }) => long)];
    return `    "${at(command)}") words=${single(offered.join(" "))} ;;\n`;
  });
  return { steps: steps.join("|"), values: values.join(""), words: words.join("") };
}

/**
 * A shell function that finds what may come next and sets `words` or `files`. Its arguments are the previous word, then
 * all words so far.
 */
function nextFunction(root: GuideCommand): string {
  const { steps, values, words } = cases(root);
  return `_tollgate_next() {
  local before=$1 at= word
  shift
  words= files=
  for word in "$@"; do
    case "$at:$word" in
      ${steps}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at:$before" in
${values}  esac
  case "$at" in
${words}  esac
}
`;
}

function bash(root: GuideCommand): string {
  return `${HEADING}${nextFunction(root)}
_tollgate() {
  local words files current=\${COMP_WORDS[COMP_CWORD]}
  _tollgate_next "\${COMP_WORDS[COMP_CWORD-1]}" "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  if [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _tollgate tollgate
`;
}

function zsh(root: GuideCommand): string {
  // In zsh, \`words\` is the command line itself while a completion runs.
  return `#compdef tollgate
${HEADING}${nextFunction(root)
  .replaceAll(/\bwords=/g, "offered=")
  .replaceAll(/\bwords\b/g, "offered")}
_tollgate() {
  local offered files
  _tollgate_next "\${words[CURRENT-1]}" "\${(@)words[2,CURRENT-1]}"
  if [[ -n $files ]]; then
    _files
  else
    compadd -- \${=offered}
  fi
}
# In a folder of $fpath this file is the function itself; read by \`source\` it only defines it.
if [ "$funcstack[1]" = _tollgate ]; then
  _tollgate "$@"
else
  compdef _tollgate tollgate
fi
`;
}

function fish(root: GuideCommand): string {
  const commands = allCommands(root);
  const steps = commands.flatMap((command) => command.commands.map((child) => single(at(child))));
  const lines = commands.flatMap((command) => {
    const here = `complete -c tollgate -n "__tollgate_at ${single(at(command))}"`;
    const children = command.commands.map(
      (child) => `${here} -a ${single(child.path.at(-1) as string)} -d ${single(child.description)}`,
    );
    const options = optionsAt(root, command).map((option) => {
      const takes = !option.takesValue ? "" : isPath(option) ? " -r -F" : ` -x -a ${single(option.choices.join(" "))}`;
      return `${here} -l ${option.long.slice(2)}${takes} -d ${single(option.description)}`;
    });
    const choices = command.choices.map((choice) => `${here} -a ${single(choice)}`);
    return [...children, ...choices, ...options];
  });
  return `${HEADING}function __tollgate_at
  set -l at
  for word in (commandline -opc)[2..-1]
    set -l longer (string trim -- "$at $word")
    contains -- $longer ${steps.join(" ")}
    and set at $longer
  end
  test "$at" = "$argv[1]"
end
complete -c tollgate -f
${lines.join("\n")}
`;
}
