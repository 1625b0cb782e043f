//! Spans as OTLP: a protobuf message over HTTP.

use super::export::TelemetryError;
use super::span::TraceSpan;

/// What is sent, and read.
pub(super) const CONTENT_TYPE: &str = "application/x-protobuf";

/// Writes an export request.
#[cfg(feature = "otel")]
pub(super) fn encode(
    resource: &[(String, String)],
    spans: &[TraceSpan],
) -> Result<Vec<u8>, TelemetryError> {
    use prost::Message as _;

    Ok(wire::request(resource, spans).encode_to_vec())
}

/// Writes an export request.
#[cfg(not(feature = "otel"))]
pub(super) fn encode(_: &[(String, String)], _: &[TraceSpan]) -> Result<Vec<u8>, TelemetryError> {
    Err(TelemetryError::Setting(
        "this program was built without OpenTelemetry; build it with the feature `otel`".to_owned(),
    ))
}

/// Returns what a collector that took a request did not take of it: how many spans, and why.
#[cfg(feature = "otel")]
pub(super) fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
    use prost::Message as _;

    let answer = ExportTraceServiceResponse::decode(answer).ok()?;
    let partial = answer.partial_success.filter(|partial| partial.rejected_spans > 0)?;
    Some((partial.rejected_spans, partial.error_message))
}

/// Returns what a collector that took a request did not take of it: how many spans, and why.
#[cfg(not(feature = "otel"))]
pub(super) fn rejected(_: &[u8]) -> Option<(i64, String)> {
    None
}

#[cfg(feature = "otel")]
mod wire {
    //! The types of the protocol.

    use aldis_signal::time::Timestamp;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::common::v1::{
        AnyValue, ArrayValue, InstrumentationScope, KeyValue,
    };
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
    use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

    use super::super::names;
    use super::super::span::{SpanEvent, SpanOutcome, TraceSpan as Plain, Value};

    const NANOS: u64 = 1_000_000;
    /// Sampled, as W3C has it: whoever was not is not exported.
    const FLAGS: u32 = 1;

    pub(super) fn request(
        resource: &[(String, String)],
        spans: &[Plain],
    ) -> ExportTraceServiceRequest {
        let attributes = resource.iter().map(|(name, value)| {
            let value = Any::StringValue(value.clone());
            pair(name, value)
        });
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        let scope = InstrumentationScope {
            name: names::SCOPE.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_spans = ScopeSpans {
            scope: Some(scope),
            spans: spans.iter().map(span).collect(),
            schema_url: names::SCHEMA_URL.to_owned(),
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(resource),
                scope_spans: vec![scope_spans],
                schema_url: names::SCHEMA_URL.to_owned(),
            }],
        }
    }

    fn span(plain: &Plain) -> Span {
        let status = match &plain.outcome {
            SpanOutcome::Unset => Status::default(),
            SpanOutcome::Ok => Status { code: StatusCode::Ok.into(), ..Status::default() },
            SpanOutcome::Failed(code) => {
                Status { code: StatusCode::Error.into(), message: code.clone() }
            }
        };
        Span {
            trace_id: plain.trace.to_vec(),
            span_id: plain.id.to_vec(),
            parent_span_id: plain.parent.map(|id| id.to_vec()).unwrap_or_default(),
            flags: FLAGS,
            name: plain.name.clone(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(plain.start),
            end_time_unix_nano: nanos(plain.end),
            attributes: attributes(&plain.attributes),
            events: plain.events.iter().map(event).collect(),
            dropped_events_count: plain.dropped,
            status: Some(status),
            ..Span::default()
        }
    }

    fn event(plain: &SpanEvent) -> Event {
        Event {
            time_unix_nano: nanos(plain.at),
            name: plain.name.to_owned(),
            attributes: attributes(&plain.attributes),
            ..Event::default()
        }
    }

    fn attributes(plain: &[(&'static str, Value)]) -> Vec<KeyValue> {
        plain.iter().map(|(name, value)| pair(name, any(value))).collect()
    }

    fn any(value: &Value) -> Any {
        match value {
            Value::Text(text) => Any::StringValue(text.clone()),
            Value::Number(number) => Any::IntValue(*number),
            Value::Decimal(number) => Any::DoubleValue(*number),
            Value::List(texts) => {
                let values = texts
                    .iter()
                    .map(|text| AnyValue { value: Some(Any::StringValue(text.clone())) });
                Any::ArrayValue(ArrayValue { values: values.collect() })
            }
        }
    }

    fn pair(name: &str, value: Any) -> KeyValue {
        let value = Some(AnyValue { value: Some(value) });
        KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
    }

    fn nanos(at: Timestamp) -> u64 {
        u64::try_from(at.as_millis()).unwrap_or_default().saturating_mul(NANOS)
    }
}
