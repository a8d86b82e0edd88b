import { resolve } from 'node:path'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { readConfig, SETTINGS } from '../../config/config.ts'
import type { Finding } from '../../core/observing/diagnosis.ts'
import { asFinding } from '../../core/observing/gpu-check.ts'
import { withoutControls } from '../../main/terminal/plain-text.ts'
import { wantsJson } from '../client/connection.ts'
import { CliError, EXIT } from '../exit.ts'

/** The server settings that select the checks. */
const TAKEN = [
  ...['port', 'host', 'dataDir', 'database', 'docker', 'dockerNetwork', 'dockerWorkerAddress', 'workerNetwork'],
  ...['tlsCert', 'tlsKey', 'tlsSelfSigned'],
  ...['backupFolder', 'backupEvery'],
  ...['kubernetes', 'kubernetesContext', 'kubernetesNamespace', 'kubernetesNetworkPolicy'],
]

/** `runyard doctor`: checks the machine and prints remedies. */
export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .summary('check this machine, with a remedy for each problem')
    .description(
      'check this machine and its container engine, with a remedy for each problem; exits with 1 when a check fails',
    )
  for (const name of TAKEN) {
    const { flag, argument, help } = SETTINGS[name]!
    command.option(argument === null ? flag : `${flag} ${argument}`, help)
  }
  command.option(
    '--image <name>',
    'image of the container that calls this machine (default: a small one that is there)',
  )
  command
    .option('--gpu', 'check what works on each free GPU of NVIDIA and how fast instead, in two minutes at most')
    .option('--json', 'print JSON lines')
    .action(doctor)
}

async function doctor({
  image,
  gpu = false,
  json = false,
  ...options
}: Record<string, unknown> & { image?: string; gpu?: boolean; json?: boolean }): Promise<void> {
  if (gpu) return doctorGpus(wantsJson({ json }))
  const reading = readConfig({ options, env: process.env, absolute: path => resolve(path) })
  if ('mistakes' in reading) throw new CliError(reading.mistakes.join('\n'), EXIT.usage)
  const forPrograms = wantsJson({ json })
  const { diagnose, folderRefusal } = await import('../../doctor/diagnose.ts')
  const refusal = folderRefusal(reading.config)
  if (refusal !== null) throw new CliError(refusal, EXIT.unavailable)
  let failed = 0
  for await (const finding of diagnose({ config: reading.config, image: image ?? null, env: process.env })) {
    if (finding.state === 'fail') failed += 1
    process.stdout.write(forPrograms ? `${JSON.stringify(finding)}\n` : findingText(finding))
  }
  if (failed > 0) process.exitCode = 1
}

async function doctorGpus(forPrograms: boolean): Promise<void> {
  const { checkGpus } = await import('../../doctor/gpu.ts')
  for await (const check of checkGpus(process.env)) {
    if (check.result === 'fails') process.exitCode = 1
    process.stdout.write(forPrograms ? `${JSON.stringify(check)}\n` : findingText(asFinding(check)))
  }
}

const COLORS = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' } as const

/** A finding for a terminal: the check, the problem, and below it the remedy. */
export function findingText({ check, state, message, action }: Finding): string {
  const word = styleText(COLORS[state], state.padEnd(4), { stream: process.stdout })
  const rest = `${check.padEnd(14)}  ${message}\n${action === null ? '' : `${' '.repeat(22)}-> ${action}\n`}`
  return `${word}  ${withoutControls(rest)}`
}
