{{/*
A text of at most `max` characters that can be the name of an object or the value of a label. One that is too long, or has a dot, gets a part of its
hash, so that two texts never make the same name.
*/}}
{{- define "runyard.short" -}}
{{- $plain := .text | replace "." "-" -}}
{{- if and (eq $plain .text) (le (len $plain) (int .max)) }}{{ $plain -}}
{{- else }}{{ printf "%s-%s" ($plain | trunc (int (sub .max 9)) | trimSuffix "-") (sha256sum .text | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* Room is left for the longest suffix of a Service, `-workers`. The name of a Service begins with a letter, and that of a release may begin with a digit. */}}
{{- define "runyard.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "runyard" $name) }}{{ $name = printf "%s-runyard" $name }}{{ end -}}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "runyard-%s" $name }}{{ end -}}
{{- include "runyard.short" (dict "text" $name "max" 55) -}}
{{- end -}}

{{/* The name of an object outside of the namespace of the release. The dot makes a hash of it where a dash could be of the one or of the other. */}}
{{- define "runyard.nameElsewhere" -}}
{{- $between := ternary "." "-" (contains "-" .Release.Namespace) -}}
{{- include "runyard.short" (dict "text" (printf "%s%s%s" .Release.Namespace $between (include "runyard.name" .)) "max" 55) -}}
{{- end -}}

{{/*
The name of an object for workers, in their namespace, which several releases may share. It follows the name of the installation unless that is given, so
that Helm refuses a release that would have the installation of another one by chance, as b-c of the namespace a and c of a-b.
*/}}
{{- define "runyard.workerObjects" -}}
{{- if eq (include "runyard.workerNamespace" .) .Release.Namespace }}{{ include "runyard.name" . -}}
{{- else if .Values.workers.installation }}{{ include "runyard.nameElsewhere" . -}}
{{- else }}{{ include "runyard.installation" . -}}
{{- end }}-workers
{{- end -}}

{{/* A value as the text of a variable. Helm reads numbers of a file as floating-point ones, whose text is 3.1536e+07. */}}
{{- define "runyard.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else if not (kindIs "invalid" .) }}{{ toJson . }}{{ end -}}
{{- end -}}

{{- define "runyard.labels" -}}
{{ include "runyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "runyard.selector" -}}
app.kubernetes.io/name: runyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "runyard.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "runyard.name" .) }}{{ else }}{{ required "serviceAccount.name: name the account that exists" .Values.serviceAccount.name }}{{ end -}}
{{- end -}}

{{/* The Secret and the key in it with which metrics are read. Values of an older chart do not have them. */}}
{{- define "runyard.metricsSecret" -}}
{{- $given := .Values.secrets.metricsKey | default dict -}}
{name: {{ $given.name | default .Values.secrets.apiKey.name }}, key: {{ $given.key | default "metrics-key" }}
{{- end -}}

{{- define "runyard.workerNamespace" -}}
{{- .Values.workers.namespace | default .Release.Namespace -}}
{{- end -}}

{{- define "runyard.installation" -}}
{{- .Values.workers.installation | default (include "runyard.short" (dict "text" (printf "%s-%s" .Release.Namespace .Release.Name) "max" 42)) -}}
{{- end -}}

{{/* A claim is of one namespace: the server sees that of the workers only where it is with them. */}}
{{- define "runyard.mountsVolumes" -}}
{{- if .Values.workers.mountVolumes -}}
{{- if ne (include "runyard.workerNamespace" .) .Release.Namespace }}{{ fail "workers.mountVolumes: the claim is in the namespace of the workers, and the server is in another one" }}{{ end -}}
{{- required "workers.mountVolumes needs workers.volumeClaim" .Values.workers.volumeClaim -}}
{{- end -}}
{{- end -}}

{{/* The volume with the certificates of certificateAuthorities; empty without. Values of an older chart do not have them. */}}
{{- define "runyard.authorities" -}}
{{- $given := .Values.certificateAuthorities | default dict -}}
{{- $items := printf "items: [{key: %s, path: authorities.pem}]" ($given.key | default "ca.crt" | quote) -}}
{{- if and $given.configMap $given.secret }}{{ fail "certificateAuthorities: name a ConfigMap or a Secret, not both" }}{{ end -}}
{{- if $given.configMap -}}
configMap: {name: {{ $given.configMap }}, {{ $items }}}
{{- else if $given.secret -}}
secret: {secretName: {{ $given.secret }}, {{ $items }}, defaultMode: 288}
{{- end -}}
{{- end -}}

{{/* Where clients reach the server: outside, or inside of the cluster. The domain of the cluster is left out: not every one is called cluster.local. */}}
{{- define "runyard.publicUrl" -}}
{{- if .Values.publicUrl }}{{ .Values.publicUrl -}}
{{- else if .Values.ingress.enabled }}http{{ if .Values.ingress.tlsSecret }}s{{ end }}://{{ .Values.ingress.host -}}
{{- else if .Values.service.tlsSecret }}https://{{ include "runyard.name" . }}.{{ .Release.Namespace }}.svc{{ if ne (int .Values.service.port) 443 }}:{{ .Values.service.port }}{{ end -}}
{{- else }}http://{{ include "runyard.name" . }}.{{ .Release.Namespace }}.svc{{ if ne (int .Values.service.port) 80 }}:{{ .Values.service.port }}{{ end -}}
{{- end -}}
{{- end -}}
