{{/* Name of everything in the operator's own namespace. */}}
{{- define "streamjoin.name" -}}
{{- printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of everything outside of it, so that two installations do not collide. */}}
{{- define "streamjoin.qualified" -}}
{{- printf "%s-%s" .Release.Namespace (include "streamjoin.name" .) -}}
{{- end -}}

{{- define "streamjoin.serviceAccount" -}}
{{- default (ternary (include "streamjoin.name" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/* Drivers accept connections from pods with this name, see the NetworkPolicy of a job. */}}
{{- define "streamjoin.selector" -}}
app.kubernetes.io/name: streamjoin-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "streamjoin.labels" -}}
{{ include "streamjoin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: streamjoin
{{- end -}}

{{- define "streamjoin.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "streamjoin.podSecurity" -}}
runAsNonRoot: true
runAsUser: 185
runAsGroup: 185
fsGroup: 185
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "streamjoin.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "streamjoin.webhookSecret" -}}
{{- default (printf "%s-webhook" (include "streamjoin.name" .)) .Values.webhook.tlsSecret -}}
{{- end -}}

{{/* Address of a page of the repository, of the root context and the page's path without its suffix. */}}
{{- define "streamjoin.page" -}}
{{- with (index . 0).Values.documentation -}}
{{- printf "%s/%s%s" (trimSuffix "/" .url) (index $ 1) .suffix -}}
{{- end -}}
{{- end -}}
