/**
 * Commands of the documentation that its test does not run, each with the reason. A line is
 * here as it is on the page.
 */
export const UNRUN: Readonly<Record<string, string>> = {
  'npm ci': 'the clone of the test is installed already',
  'npm start': 'it runs serve --sample, which the other pages run',
  'npm ci && npm start': 'as above',
  'npm ci && npm test': 'this test is one of its tests',
  'runyard doctor --gpu': 'it needs a GPU; test/wire/workers/doctor-gpu plays one',
  'npm link': 'it changes the commands of this machine; scripts/check-packages installs the clone elsewhere',
  'runyard init my-model': 'the folder of the test has one; test/wire/first-hour/init makes another',
  'runyard init my-api --lb': 'as above',
  'runyard serve --worker my-python --setup': 'test/wire/first-hour/setup installs packages',
  'git clone <repository> runyard && cd runyard': 'the test runs in a clone',
  'iptables -I INPUT -i ry-+ -p tcp -m multiport --dports 22,5432 -j REJECT': 'it changes the firewall of this machine',
  'runyard build ./my-model -t my-model:1': 'test/wire/docker/docker-images builds images',
  "runyard test ./my-model --container      # the same, from the folder's Dockerfile":
    'test/wire/docker/docker-images builds images',
  'runyard serve --tls-cert /etc/runyard/fullchain.pem --tls-key /etc/runyard/privkey.pem --host 0.0.0.0 --port 443 --http-redirect-port 80 --public-url https://runyard.example':
    'test/wire/clients/https and test/wire/faults/certificate-rotation run servers with a certificate',
  'certbot certonly --webroot -w /var/www/html -d runyard.example': 'it asks an authority that cannot be reached',
  'setfacl -R -m u:runyard:rX -m d:u:runyard:rX /etc/letsencrypt/live /etc/letsencrypt/archive':
    'it changes who may read files of this machine',
  'sudo -u postgres createuser --pwprompt runyard && sudo -u postgres createdb --owner=runyard runyard':
    'it makes a user of the database of this machine',
  "RUNYARD_DATABASE='postgres://runyard:password@127.0.0.1:5432/runyard' runyard serve":
    'test/wire/faults/postgres runs servers on PostgreSQL',
  "RUNYARD_DATABASE='postgres://runyard:password@db:5432/runyard' runyard serve --host 0.0.0.0 --processes off --docker off":
    'test/wire/faults/postgres-servers runs two servers on PostgreSQL',
  'runyard deploy vllm --set MODEL_NAME=Qwen/Qwen2.5-7B-Instruct --run':
    'the image cannot be pulled here; test/wire/docker/deploy runs one of its own',
  './bin/node scripts/torture.ts --jobs 1000 --kills 10 --worker python': 'test/wire/faults/torture runs a short one',
  './bin/node scripts/torture.ts --freezes 200 --worker node': 'test/wire/faults/torture runs a short one',
  './bin/node scripts/torture.ts --soak 60': 'it takes an hour; test/scripts/soak judges what one saw',
  'npm install --global @opentelemetry/exporter-trace-otlp-proto': 'scripts/check-packages installs it',
  'runyard endpoints promote <endpoint>   # or continue without further checks':
    'no release fails its jobs here; test/app/scaling/rollout-judge promotes one',
  'runyard serve --data-dir ./restored': 'test/wire/faults/backup starts a server on a restored backup',
  'runyard master-key rotate --data-dir ./.runyard        # with RUNYARD_DATABASE as the server has it':
    'test/wire/faults/master-key rotates keys, while the server is stopped',
}
