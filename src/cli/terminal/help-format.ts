import { Help, type HelpConfiguration } from 'commander'

/** Longest term beside which its description stands; that of a longer one is below it. */
const MAX_TERM = 24
const INDENT = 2
const GAP = 2

/** Help that fits a terminal of 80 columns: long options have their description below them. */
export const HELP_FORMAT: HelpConfiguration = {
  subcommandTerm: command =>
    [
      command.name(),
      ...command.registeredArguments.map(argument =>
        argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
      ),
    ].join(' '),
  optionDescription({ description, argChoices, defaultValue }) {
    const isSaid = argChoices?.every(choice => description.includes(choice)) === true
    const more = [
      ...(argChoices === undefined || isSaid ? [] : [argChoices.join(', ')]),
      ...(typeof defaultValue === 'string' || typeof defaultValue === 'number' ? [`default: ${defaultValue}`] : []),
    ]
    return more.length === 0 ? description : `${description} (${more.join('; ')})`
  },
  padWidth: (command, helper) => Math.min(MAX_TERM, new Help().padWidth(command, helper)),
  formatItem: (term, termWidth, description, helper) => {
    const width = (helper.helpWidth ?? 80) - INDENT - termWidth - GAP
    const lines = description === '' ? [] : helper.boxWrap(description, width).split('\n')
    const indent = ' '.repeat(INDENT + termWidth + GAP)
    if (helper.displayWidth(term) > termWidth)
      return [`${' '.repeat(INDENT)}${term}`, ...lines.map(line => indent + line)].join('\n')
    const [first = '', ...rest] = lines
    return [
      `${' '.repeat(INDENT)}${term.padEnd(termWidth + GAP)}${first}`.trimEnd(),
      ...rest.map(line => indent + line),
    ].join('\n')
  },
}
