import { Argument, type Command } from 'commander'

/** `runyard completion <shell>`: a script that completes commands, options and ids. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .summary('print a completion script for bash, zsh or fish')
    .description('print a completion script; for bash: eval "$(runyard completion bash)"')
    .action((shell: keyof typeof SCRIPTS) => {
      process.stdout.write(SCRIPTS[shell](listFollowing(program)))
    })
}

/** Completions of a command. */
interface Following {
  /** The words of the command: `''`, `'endpoints'`, `'endpoints create'`. */
  readonly command: string
  readonly words: readonly string[]
  /** The command whose `list` prints the ids for its argument; null without one. */
  readonly ids: string | null
}

function listFollowing(program: Command): Following[] {
  const all: Following[] = []
  const visit = (command: Command, path: readonly string[]) => {
    const children = command.createHelp().visibleCommands(command)
    const commands = children.filter(child => child.name() !== 'help')
    const options = command.options.flatMap(({ long }) => long ?? [])
    const words = [...commands.map(child => child.name()), ...options, '--help']
    all.push({ command: path.join(' '), words, ids: idList(command, path) })
    for (const child of commands) visit(child, [...path, child.name()])
  }
  visit(program, [])
  return all
}

/** The list with the ids for the first argument. Jobs are too many to offer. */
function idList(command: Command, path: readonly string[]): string | null {
  const name = command.registeredArguments[0]?.name()
  if (name === 'endpoint') return 'endpoints'
  if (name === 'worker') return 'workers'
  if (name !== 'id') return null
  return path.length > 1 ? path[0]! : 'endpoints'
}

const SCRIPTS = {
  bash: (all: readonly Following[]) => `_runyard() {
  local path="" word following="" ids="" current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do case $word in -*) ;; *) path="$path $word" ;; esac; done
  local whole="$path"
  while :; do
    case "\${path# }" in
${all.map(({ command, words, ids }) => `      '${command}') following="${words.join(' ')}"; ids="${ids ?? ''}"; break ;;`).join('\n')}
    esac
    [ -n "$path" ] || break
    path=\${path% *}
  done
  if [ -n "$ids" ] && [ "$path" = "$whole" ] && [ "\${current#-}" = "$current" ]; then
    following="$following $("\${COMP_WORDS[0]}" "$ids" list --json 2>/dev/null | sed -n 's/^{"id":"\\([^"]*\\)".*/\\1/p')"
  fi
  COMPREPLY=($(compgen -W "$following" -- "$current"))
  [ -n "\${COMPREPLY[*]}" ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _runyard runyard
`,
  zsh: (all: readonly Following[]) => `autoload -U +X bashcompinit && bashcompinit
${SCRIPTS.bash(all)}`,
  fish: (all: readonly Following[]) =>
    all
      .flatMap(({ command, words, ids }) => {
        const [group, verb] = command.split(' ')
        const seen =
          group === ''
            ? '__fish_use_subcommand'
            : [group, verb]
                .flatMap(word => (word === undefined ? [] : `__fish_seen_subcommand_from ${word}`))
                .join('; and ')
        const list = `(runyard ${ids} list --json 2>/dev/null | string replace -rf "^.\\"id\\":\\"([^\\"]+).*" "\\$1")`
        const offered = [words.join(' '), ...(ids === null ? [] : [list])]
        return offered.map(what => `complete -c runyard -n '${seen}' -a '${what}'`)
      })
      .join('\n')
      .concat('\n'),
}
