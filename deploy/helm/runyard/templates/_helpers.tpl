{{- define "runyard.name" -}}
{{- if contains "runyard" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-runyard{{ end -}}
{{- end -}}

{{- define "runyard.labels" -}}
{{ include "runyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
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
{{- .Values.workers.installation | default (printf "%s-%s" .Release.Namespace .Release.Name | trunc 42 | trimSuffix "-") -}}
{{- end -}}

{{/* A claim is of one namespace: the server sees that of the workers only where it is with them. */}}
{{- define "runyard.mountsVolumes" -}}
{{- if .Values.workers.mountVolumes -}}
{{- if ne (include "runyard.workerNamespace" .) .Release.Namespace }}{{ fail "workers.mountVolumes: the claim is in the namespace of the workers, and the server is in another one" }}{{ end -}}
{{- required "workers.mountVolumes needs workers.volumeClaim" .Values.workers.volumeClaim -}}
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
