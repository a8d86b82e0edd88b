{{/* The settings of the server. Those that are secret are references. */}}
{{- define "runyard.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: RUNYARD_ADVERTISE_HOST
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: RUNYARD_HOST
  value: "0.0.0.0"
- name: RUNYARD_DATA_DIR
  value: /var/lib/runyard
- name: RUNYARD_DATABASE
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.database.name }}, key: {{ .Values.secrets.database.key }}}}
- name: RUNYARD_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.apiKey.name }}, key: {{ .Values.secrets.apiKey.key }}}}
# Only where the Secret has it: while the API key is changed.
- name: RUNYARD_PREVIOUS_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.apiKey.name }}, key: previous-api-key, optional: true}}
# Only if the Secret has it: it is for reading metrics, and a server runs without it.
- name: RUNYARD_METRICS_KEY
  valueFrom: {secretKeyRef: {{ include "runyard.metricsSecret" . }}, optional: true}}
- name: RUNYARD_MASTER_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.encryptionKey.name }}, key: {{ .Values.secrets.encryptionKey.key }}}}
- name: RUNYARD_KUBERNETES
  value: in-cluster
- name: RUNYARD_KUBERNETES_NAMESPACE
  value: {{ include "runyard.workerNamespace" . | quote }}
- name: RUNYARD_KUBERNETES_INSTALLATION
  value: {{ include "runyard.installation" . | quote }}
- name: RUNYARD_KUBERNETES_WORKER_PORT
  value: "8082"
- name: RUNYARD_KUBERNETES_WORKER_URL
  value: "http://{{ include "runyard.name" . }}-workers.{{ .Release.Namespace }}.svc"
# They are objects of this chart, so that the server needs no right to make them.
- name: RUNYARD_KUBERNETES_NETWORK_POLICY
  value: "off"
{{- with .Values.workers.volumeClaim }}
- name: RUNYARD_KUBERNETES_VOLUME_CLAIM
  value: {{ . | quote }}
{{- end }}
{{- with .Values.workers.priorityClass }}
- name: RUNYARD_KUBERNETES_PRIORITY_CLASS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.workers.runtimeClass }}
- name: RUNYARD_KUBERNETES_RUNTIME_CLASS
  value: {{ . | quote }}
{{- end }}
# Its workers are pods, which call it themselves: neither an engine nor a relay of this pod is of use.
- name: RUNYARD_DOCKER
  value: "off"
- name: RUNYARD_PROCESSES
  value: "off"
- name: RUNYARD_DIRECT_WORKERS
  value: "true"
# For the moments in which the label of the active server is late.
- name: RUNYARD_FORWARD_TO_ACTIVE
  value: "true"
- name: RUNYARD_ALLOWED_HOST
  value: {{ include "runyard.hosts" . | quote }}
- name: RUNYARD_PUBLIC_URL
  value: {{ include "runyard.publicUrl" . | quote }}
{{- if .Values.service.tlsSecret }}
- name: RUNYARD_TLS_CERT
  value: /etc/runyard-tls/tls.crt
- name: RUNYARD_TLS_KEY
  value: /etc/runyard-tls/tls.key
{{- end }}
{{- with .Values.trustedProxies }}
- name: RUNYARD_TRUSTED_PROXY
  value: {{ join "," . | quote }}
{{- end }}
{{- if include "runyard.authorities" . }}
- name: NODE_EXTRA_CA_CERTS
  value: /etc/runyard-authorities/authorities.pem
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ include "runyard.text" $value | quote }}
{{- end }}
{{- range .Values.extraEnv }}
- name: {{ .name }}
  {{- if hasKey . "valueFrom" }}
  valueFrom: {{- toYaml .valueFrom | nindent 4 }}
  {{- else }}
  value: {{ include "runyard.text" (get . "value") | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The names by which the server is called: all forms of its Services, and that of its ingress. */}}
{{- define "runyard.hosts" -}}
{{- $names := list -}}
{{- range $service := list (include "runyard.name" .) (printf "%s-workers" (include "runyard.name" .)) -}}
{{- range $form := list "%s" "%s.%s" "%s.%s.svc" "%s.%s.svc.cluster.local" -}}
{{- if contains "." $form }}{{ $names = append $names (printf $form $service $.Release.Namespace) }}{{ else }}{{ $names = append $names $service }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with .Values.ingress.host }}{{ $names = append $names . }}{{ end -}}
{{- range .Values.allowedHosts }}{{ $names = append $names . }}{{ end -}}
{{- join "," $names -}}
{{- end -}}
