{{- define "weir.name" -}}
{{- if contains "weir" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-weir{{ end }}
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* The names of the Service, as pods of the cluster call it, and those from outside. */ -}}
{{- define "weir.hosts" -}}
{{- $name := include "weir.name" . -}}
{{- $space := printf "%s.%s" $name .Release.Namespace -}}
{{- concat (list $name $space (printf "%s.svc" $space) (printf "%s.svc.cluster.local" $space)) .Values.hosts | toJson }}
{{- end }}
