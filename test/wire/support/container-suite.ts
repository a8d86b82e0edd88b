/**
 * Table of the tests here that run a second time, with workers in containers, and of the reasons why the others do
 * not. Every file is in one of the two tables, and every name is that of a test; test/tidy checks both.
 */

const NOTHING_RUNS = 'there are no workers'

/** Files that run with containers, each with those of its tests that do not, and why. */
export const WITH_CONTAINERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'clients/batch': {
    'a server that is killed while it finalizes a batch finalizes it after its restart': NOTHING_RUNS,
    'on PostgreSQL, too': NOTHING_RUNS,
  },
  'clients/cli': {
    'commands for resources': NOTHING_RUNS,
    'a verb that makes no sense says why and ends with 2': NOTHING_RUNS,
    'bash completes verbs, and the ids that the server has': NOTHING_RUNS,
    'each list says the id of a thing first, since completion reads it there': NOTHING_RUNS,
    'the completion script knows commands, their verbs and their options': NOTHING_RUNS,
  },
  'clients/graphql-clients': {},
  'clients/job-operations': {
    'policy.ttl counts from the submission': NOTHING_RUNS,
  },
  'clients/js-client': {},
  'workers/load-balancing': {},
  'clients/logs': {
    'is in the logs of its job, and nothing that it prints for others':
      'the output of containers is copied, so lines of jobs in a row may be of both',
  },
  'clients/management': {
    'an endpoint is shown whole, with the rate windows in the headers': 'it compares the definition of a process',
    'inline literals, with an enum and a blank before a colon, make a template and an endpoint':
      'it compares the definition of a process',
  },
  'clients/mcp': {},
  'clients/metrics': {},
  'workers/node-worker': {
    'a folder that is missing, lies elsewhere or holds no handler is refused when it is saved':
      'folders are what processes run',
    'two workers that want one fixed port: why names the variable and the port, and what to do':
      'containers have ports of their own',
  },
  'clients/old-sdks': {
    'with several jobs at once, some of them longer than its pings, all are done, each once':
      'half a minute for each SDK, in which nothing depends on where it runs',
    'two workers in one folder do each job once, and neither takes the jobs of the other for its own':
      'no two containers have one folder',
  },
  'clients/openai': {},
  'clients/openai-js': {},
  'faults/outage': {},
  'faults/planted-secrets': {},
  'faults/postgres': {
    'a server without its PostgreSQL does not start, and says why without the password': NOTHING_RUNS,
  },
  'clients/python-client': {},
  'workers/python-worker': {
    'what the SDK downloads for a job lies in the private folder of its worker, not in the folder of all':
      'containers have file systems of their own',
  },
  'faults/relay-process': {
    'its file is for its owner alone, and its arguments hold no secret': NOTHING_RUNS,
    'one that does not end in time is killed, and nothing is left of it either': NOTHING_RUNS,
    'without a server a signal ends it': NOTHING_RUNS,
    'one whose data directory is removed ends by itself': NOTHING_RUNS,
  },
  'clients/rest-v1': {},
  'faults/restart': {
    'without a relay a start on another port ends the workers that know the old one and leaves no orphan':
      'containers call an address of their own, which stays',
    'a start that cannot be': NOTHING_RUNS,
    'Ctrl-C reaches the server alone, and its workers finish': 'no terminal reaches containers',
  },
  'clients/streams': {
    '500 small chunks arrive complete and in order, in each of the three shapes':
      'it counts chunks that the server has; the other tests bring some from containers',
  },
  'clients/webhooks': {
    'after two answers of 500 the third try arrives, 10 seconds apart': 'it is about the receiver',
    'a receiver that hangs is given up after 10 seconds, a redirect is not followed, a long body is cut':
      'it is about the receiver',
    'a server that is killed between tries delivers after its restart': NOTHING_RUNS,
    'with --webhook-public-only private addresses are refused too': NOTHING_RUNS,
  },
  'workers/worker-calls': {},
  'faults/worker-faults': {
    'an idle worker asks at most three times a minute for jobs and three times for stops':
      'a minute of counting what the SDK does, wherever it runs',
    'a worker whose loop is stuck while it keeps pinging is ended after two minutes, with the reason':
      'two minutes in which the server counts pings; docker.test.ts and python-worker.test.ts end containers',
  },
}

/**
 * The files that run with containers in every whole run, each with those of its tests that run then only with
 * `--workers container`. A whole run has what depends on a container: how it starts, calls, writes, is adopted and
 * ends.
 */
export const IN_EVERY_RUN: Readonly<Record<string, readonly string[]>> = {
  'faults/planted-secrets': ['with a PostgreSQL behind the server'],
  'faults/restart': [
    'a worker that ends while the server is away gives its job back',
    'a start on another port keeps the workers, and the result of a job that runs',
    'a server that is asked to stop',
    'a server whose output has no reader',
    'a server whose log cannot be written',
    'a full disk: what is kept can be read, the rest is refused with the reason, and all goes on when there is room',
    'SIGHUP ends no server that has no terminal, as under nohup, whether or not it has a certificate',
  ],
  'workers/load-balancing': [],
  'workers/node-worker': [
    'its signal aborts when the job is cancelled, and its worker takes the next job',
    'its concurrency bounds what runs at once, and its errors and progress show',
    'an endpoint with max 0 is paused, and resumes when it is raised',
    'why without an id covers all endpoints, and reports what it cannot find or reach',
    'an unknown id is reported with exit code 66',
  ],
  'workers/python-worker': [
    'an empty input reaches the handler as an empty object',
    'whatever a handler returns becomes the outcome that the SDK means',
    'NaN becomes null with a warning, and a large integer keeps its digits',
    'a result that the SDK cannot send fails its job within seconds, instead of leaving it running forever',
    'progress shows in the status while the job runs',
    'a worker with capacity 4 never runs more at once, and all jobs are done',
    'cancelling stops a handler that awaits, and its worker takes the next job',
    'thirty jobs that are cancelled in their first 100 ms all stop, and their worker stays',
    'a job past its execution timeout is TIMED_OUT, and its handler is stopped',
  ],
}

/** Beginnings of the names of files that have containers of their own, or workers that the test plays. */
export const OF_CONTAINERS: readonly string[] = ['docker/', 'kubernetes/', 'gateway/', 'attacks/']

/** Files that do not, and why. */
export const WITHOUT_CONTAINERS: Readonly<Record<string, string>> = {
  'clients/job-history': 'the commands are the same wherever workers run',
  'first-hour/folder': 'folders are what processes run',
  'first-hour/setup': 'folders are what processes run',
  'first-hour/init': 'folders are what processes run',
  'docs/pages': 'its pages name the containers themselves',
  'first-hour/team': 'its workers are in containers',
  'first-hour/page': 'it is about browsers',
  'clients/examples': 'folders are what processes run',
  'clients/alerts': 'it starts no worker',
  'clients/models': 'models lead to endpoints, and the routes of these have tests of their own',
  'first-hour/wrong-start': 'it starts no container',
  'first-hour/terminal': 'folders are what processes run',
  'clients/cancelled-jobs':
    'what SDKs do with a cancelled job, wherever they run; old-sdks.test.ts runs with containers',
  'workers/python-sdk2': 'its SDK is in no image of the tests',
  'clients/rp': 'its SDK is in no image of the tests',
  'workers/python-runtime': 'its SDK is in no image of the tests',
  'workers/dev-sessions': 'its SDK is in no image of the tests',
  'workers/deployed-apps': 'its SDK is in no image of the tests',
  'workers/tasks': 'its SDK is in no image of the tests',
  'workers/doctor': NOTHING_RUNS,
  'workers/doctor-gpu': NOTHING_RUNS,
  'traces/traces': 'what a worker is told is in its job or its request, wherever it runs',
  'workers/process-cage': 'cages are what processes run in',
  'faults/floods': 'it measures the memory of the server, whatever its workers are',
  'faults/floods-connections': 'as floods',
  'faults/floods-slow': 'as floods',
  'workers/sleeping-server': 'its server listens on 127.0.0.1, as processes should',
  'workers/gpu-story': 'containers get GPUs from the engine, which would need real ones',
  'workers/gpus': 'containers get GPUs from the engine, which would need real ones',
  'workers/paused-workers': 'the contract of the drivers has containers that stand still and go on',
  'workers/shared-card': 'containers get GPUs from the engine, which would need real ones',
  'workers/suspended-workers': 'containers get GPUs from the engine, which would need real ones',
  'clients/graphql-documents': NOTHING_RUNS,
  'clients/graphql-http': NOTHING_RUNS,
  'clients/hub-tests': 'its servers and workers are those of a command that runs a folder',
  'faults/audit-log': 'what is in the audit log does not depend on how workers run',
  'faults/backup': 'what is restored does not depend on how its workers ran',
  'clients/https': 'containers call their own address, in plain HTTP with and without HTTPS for clients',
  'faults/certificate-rotation': 'it is about connections of clients, wherever workers run',
  'faults/master-key': NOTHING_RUNS,
  'workers/rollouts': 'it breaks the command line of a process; docker-rollouts.test.ts breaks that of containers',
  'workers/worker-models': 'it has containers of its own',
  'workers/models': 'downloads are the same wherever workers run',
  'faults/relay-hang': 'it stops the relay, whoever calls it',
  'faults/power-cut': 'it is about the data directory',
  'faults/postgres-lease': 'it starts no worker',
  'faults/clock-steps': 'it speaks for its workers itself',
  'faults/scheduled-backups': 'it is about files of the server',
  'faults/upgrade': 'it starts no worker',
  'faults/upgrade-postgres': 'it starts no worker',
  'faults/postgres-servers': 'it is about who acts on the database',
  'faults/takeovers': 'it is about who acts on the database, and its workers only have to go on',
  'faults/postgres-trouble': 'it is about the database; postgres.test.ts runs with containers',
  'clients/python-management': 'it makes and changes definitions',
  'workers/python-served': 'the development server of the SDK runs without a platform',
  'clients/python-surface': 'it is about each method of the client; python-client.test.ts runs with containers',
  'faults/relay': NOTHING_RUNS,
  'faults/socket-activation': NOTHING_RUNS,
  'faults/systemd': 'the service runs workers in processes and cages',
  'faults/relay-terms': NOTHING_RUNS,
  'clients/rest-clients': 'it makes and changes definitions',
  'clients/s3': NOTHING_RUNS,
  'clients/schemathesis': NOTHING_RUNS,
  'workers/large-payloads': 'it measures the memory of the server and its relay, whatever its workers are',
  'workers/slow-reader': 'it measures the memory of the server, whatever its workers are',
  'clients/top': NOTHING_RUNS,
  'faults/torture': 'its script starts servers and workers of its own, for people without a container engine',
  'clients/transcript':
    'the worker is played by the test; worker-calls.test.ts plays one through the address of containers',
}

/** The paths of the files that run with containers. */
export const containerFiles: readonly string[] = Object.keys(WITH_CONTAINERS).map(pathOf)

/** The files among them that run with containers in every whole run. */
export const everyRunFiles: readonly string[] = Object.keys(IN_EVERY_RUN).map(pathOf)

/**
 * Patterns for the names of their tests that are left out, which no other name has.
 * @param isWhole true for a whole run
 */
export function leftOut(isWhole: boolean): RegExp[] {
  const names = Object.values(WITH_CONTAINERS).flatMap(Object.keys)
  const onlyAlone = isWhole ? Object.values(IN_EVERY_RUN).flat() : []
  return [...names, ...onlyAlone].map(name => new RegExp(`(?:^| )${RegExp.escape(name)}(?: |$)`))
}

function pathOf(name: string): string {
  return `test/wire/${name}.test.ts`
}
