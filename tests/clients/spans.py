"""Decodes the OTLP requests in the files that are named, and prints the spans of all of them as one JSON list."""

import json
import pathlib
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


spans = []
for name in sys.argv[1:]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(pathlib.Path(name).read_bytes())
    for of_resource in request.resource_spans:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                spans.append({
                    "resource": resource,
                    "scope": of_scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "attributes": attributes(span.attributes),
                    "links": [link.trace_id.hex() for link in span.links],
                    "failed": span.status.code == 2,
                    "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                })
print(json.dumps(spans))
