{{/*
Names are fixed rather than derived from the release: there is one Assent in a
cluster, since its webhook configurations and ClusterRoles are cluster-wide.
*/}}
{{- define "assent.selector" -}}
app.kubernetes.io/name: assent
app.kubernetes.io/component: operator
{{- end }}

{{- define "assent.labels" -}}
app.kubernetes.io/name: assent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: assent
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The replicas must share a node when their volume can be on one node only. */}}
{{- define "assent.oneNode" -}}
{{- if and (eq .Values.audit.persistence.type "pvc") (eq .Values.audit.persistence.accessMode "ReadWriteOnce") }}true{{ end -}}
{{- end }}
