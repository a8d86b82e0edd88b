import { Argument, type Command } from 'commander'

/** `runyard completion <shell>`: a script that completes commands and options. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .description('print a completion script; for bash: eval "$(runyard completion bash)"')
    .action((shell: keyof typeof SCRIPTS) => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program)))
    })
}

/** What can follow each command, by its words: `''`, `'endpoints'`, `'endpoints create'`. */
type Words = readonly (readonly [command: string, following: readonly string[]])[]

function wordsOf(program: Command): Words {
  const words: [string, string[]][] = []
  const visit = (command: Command, path: readonly string[]) => {
    const commands = command.commands.map(child => child.name())
    const options = command.options.flatMap(({ long }) => long ?? [])
    words.push([path.join(' '), [...commands, ...options, '--help']])
    for (const child of command.commands) visit(child, [...path, child.name()])
  }
  visit(program, [])
  return words
}

const SCRIPTS = {
  bash: (words: Words) => `_runyard() {
  local path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do case $word in -*) ;; *) path="$path $word" ;; esac; done
  local following=""
  while :; do
    case "\${path# }" in
${words.map(([command, following]) => `      '${command}') following="${following.join(' ')}"; break ;;`).join('\n')}
    esac
    [ -n "$path" ] || break
    path=\${path% *}
  done
  COMPREPLY=($(compgen -W "$following" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ -n "\${COMPREPLY[*]}" ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _runyard runyard
`,
  zsh: (words: Words) => `autoload -U +X bashcompinit && bashcompinit
${SCRIPTS.bash(words)}`,
  fish: (words: Words) =>
    words
      .map(([command, following]) => {
        const seen =
          command === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${command.split(' ').at(-1)}`
        return `complete -c runyard -n '${seen}' -a '${following.join(' ')}'`
      })
      .join('\n')
      .concat('\n'),
}
