{{/* Refuses values that are wrong together, with a line for each mistake. Types and patterns are in values.schema.json. */}}
{{- define "runyard.check" -}}
{{- $mistakes := printf "%s%s%s" (include "runyard.mistakesInWorkers" .) (include "runyard.mistakesInVariables" .) (include "runyard.mistakesInVolumes" .) | trim -}}
{{- if $mistakes }}{{ fail (printf "\n%s" $mistakes) }}{{ end -}}
{{- end -}}

{{/* Who may read the Secrets of the namespace of workers, as the server has to, would read its own there. */}}
{{- define "runyard.mistakesInWorkers" -}}
{{- $own := .Values.workers.namespace | default .Release.Namespace | ne .Release.Namespace -}}
{{- if and (not $own) (not .Values.workers.shareNamespace) -}}
{{- printf "workers.namespace: name a namespace for workers alone, which exists. In that of the release (%s) the server may read and change all Secrets, its own too, and make pods that read them. If that is necessary, such as for workers.mountVolumes, set workers.shareNamespace=true\n" .Release.Namespace -}}
{{- end -}}
{{- if and $own .Values.workers.shareNamespace -}}
{{- printf "workers.shareNamespace: workers.namespace (%s) is another one than that of the release (%s); leave one of them out\n" .Values.workers.namespace .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Variables that the chart sets itself, beside those of Secrets. */}}
{{- define "runyard.ownVariables" -}}
POD_NAME POD_NAMESPACE RUNYARD_HOST RUNYARD_PORT RUNYARD_DATA_DIR RUNYARD_DOCKER RUNYARD_PROCESSES RUNYARD_DIRECT_WORKERS RUNYARD_ADVERTISE_HOST RUNYARD_FORWARD_TO_ACTIVE
RUNYARD_ALLOWED_HOST RUNYARD_PUBLIC_URL RUNYARD_TRUSTED_PROXY RUNYARD_TLS_CERT RUNYARD_TLS_KEY RUNYARD_KUBERNETES RUNYARD_KUBERNETES_NAMESPACE
RUNYARD_KUBERNETES_INSTALLATION RUNYARD_KUBERNETES_WORKER_PORT RUNYARD_KUBERNETES_WORKER_URL RUNYARD_KUBERNETES_WORKER_HOST RUNYARD_KUBERNETES_NETWORK_POLICY
RUNYARD_KUBERNETES_VOLUME_CLAIM RUNYARD_KUBERNETES_PRIORITY_CLASS RUNYARD_KUBERNETES_RUNTIME_CLASS RUNYARD_KUBERNETES_CONTEXT
{{- end -}}

{{/* Nobody sets a variable twice, or one of the chart, or a secret as it is: values are kept with each release, for all who may read that. */}}
{{- define "runyard.mistakesInVariables" -}}
{{- $secrets := dict "RUNYARD_DATABASE" "database" "RUNYARD_API_KEY" "apiKey" "RUNYARD_PREVIOUS_API_KEY" "apiKey" "RUNYARD_METRICS_KEY" "metricsKey" "RUNYARD_MASTER_KEY" "encryptionKey" -}}
{{- $own := regexSplit "\\s+" (include "runyard.ownVariables" .) -1 -}}
{{- $given := list -}}
{{- range $name, $value := .Values.settings -}}
{{- $given = append $given (dict "name" $name "place" "settings" "value" (include "runyard.text" $value)) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- $given = append $given (dict "name" .name "place" "extraEnv" "value" (include "runyard.text" (get . "value")) "isReference" (hasKey . "valueFrom")) -}}
{{- end -}}
{{- $places := dict -}}
{{- if include "runyard.authorities" . }}{{ $_ := set $places "NODE_EXTRA_CA_CERTS" "certificateAuthorities" }}{{ end -}}
{{- range $given -}}
{{- $what := printf "%s.%s" .place .name -}}
{{- if hasKey $secrets .name -}}
{{- printf "%s: put it into the Secret that secrets.%s names; values of the chart are no place for secrets\n" $what (get $secrets .name) -}}
{{- else if has .name $own -}}
{{- printf "%s: the chart sets this variable itself\n" $what -}}
{{- else if hasKey $places .name -}}
{{- printf "%s: %s sets this variable already\n" $what (get $places .name) -}}
{{- else if and (not .isReference) (include "runyard.isSecret" .) -}}
{{- printf "%s: this is a secret, and values of the chart are kept as they are with each release; put it into a Secret, and name that in extraEnv: [{name: %s, valueFrom: {secretKeyRef: {name: ..., key: ...}}}]\n" $what .name -}}
{{- end -}}
{{- $_ := set $places .name .place -}}
{{- end -}}
{{- end -}}

{{/*
Not empty where the name of a variable says that it is a secret, or its value has a password or a private key in it. Names of files are no secrets, and of
the settings of Runyard one more is.
*/}}
{{- define "runyard.isSecret" -}}
{{- if hasPrefix "RUNYARD_" .name -}}
{{- if eq .name "RUNYARD_BACKUP_PASSPHRASE" }}named{{ end -}}
{{- else if not (regexMatch "(?i)_(file|path|dir)$" .name) -}}
{{- if regexMatch "(?i)(passw|passphrase|secret|credential|headers|token(_|$)|(api|access|private|account)_?key)" .name }}named{{ end -}}
{{- end -}}
{{- if regexMatch "://[^/?#\\s@]*:[^/?#\\s@]+@|[?&]password=|-----BEGIN [A-Z ]*PRIVATE KEY" .value }}held{{ end -}}
{{- end -}}

{{/* What Kubernetes would refuse later, once for each pod that it cannot make. */}}
{{- define "runyard.mistakesInVolumes" -}}
{{- $own := list "data" "tmp" "certificate" "volumes" "authorities" -}}
{{- range .Values.extraVolumes -}}
{{- if has .name $own }}{{ printf "extraVolumes: %s is the name of a volume of the chart, or is given twice\n" .name }}{{ end -}}
{{- $own = append $own .name -}}
{{- end -}}
{{- $paths := list "/var/lib/runyard" "/tmp" "/etc/runyard-tls" "/var/lib/runyard/volumes" "/etc/runyard-authorities" -}}
{{- range .Values.extraVolumeMounts -}}
{{- if has (.mountPath | trimSuffix "/") $paths }}{{ printf "extraVolumeMounts: something is mounted at %s already\n" .mountPath }}{{ end -}}
{{- $paths = append $paths (.mountPath | trimSuffix "/") -}}
{{- if not (has .name $own) }}{{ printf "extraVolumeMounts: no volume in extraVolumes has the name %s\n" .name }}{{ end -}}
{{- end -}}
{{- end -}}
