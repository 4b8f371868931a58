"""Checks what `deploy/` says against the schemas of Kubernetes and Compose. Arguments: `kubernetes` or `compose`,
and a file of YAML; standard output: the same as JSON."""

import json
import sys
from pathlib import Path

import compose_spec
import kubernetes_validate
import yaml

# The oldest version that the chart supports, and the newest one with schemas here.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]
# Kinds that no schema of Kubernetes has.
OTHERS = {"ServiceMonitor"}


def kubernetes(text):
    documents = [document for document in yaml.safe_load_all(text) if document]
    for document in documents:
        if document["kind"] not in OTHERS:
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
    return documents


def compose(text):
    # PyYAML has merged what the services share.
    document = yaml.safe_load(text)
    compose_spec.PyCompose.from_json(json.dumps(document)).validate()
    return document


print(json.dumps({"kubernetes": kubernetes, "compose": compose}[sys.argv[1]](Path(sys.argv[2]).read_text())))
