//! The router and the OpenAPI document, made of the same calls: a route is described by the types that
//! its handler takes and returns, so that none is without a schema.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Path;
use axum::handler::Handler;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use axum::{Json, Router};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::forms::Answer;
use super::request::{Asked, KEY_MAX, Named, Sent, SentNothing};
use super::table;
use crate::server::access::Asker;
use crate::server::access::need::{Need, Needs};
use crate::server::app::{App, AppState};
use crate::server::error::{ApiError, ErrorForm};

/// The routes, and what they say about themselves.
pub(super) struct Routes {
    pub(super) router: Router<Arc<App>>,
    /// What each of them needs.
    pub(in crate::server) needs: Needs,
    paths: Value,
    schemas: Schemas,
}

/// Makes schemas. What is optional in a request may be certain in an answer.
struct Schemas {
    taken: SchemaGenerator,
    returned: SchemaGenerator,
}

impl Routes {
    pub(super) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        let taken = settings.clone().for_deserialize().into_generator();
        let returned = settings.for_serialize().into_generator();
        let schemas = Schemas { taken, returned };
        Self { router: Router::new(), needs: Needs::default(), paths: json!({}), schemas }
    }

    /// Adds a route: `method` is `get`, `post`, `put` or `delete`.
    pub(super) fn add<H: Handler<T, Arc<App>> + Describe<D>, T: 'static, D>(
        &mut self,
        method: &str,
        path: &str,
        need: Need,
        summary: &str,
        handler: H,
    ) {
        let verb = table::method(method);
        let filter = MethodFilter::try_from(verb.clone()).unwrap_or(MethodFilter::GET);
        self.needs.add(path, Some(verb), need);
        self.router = std::mem::take(&mut self.router).route(path, on(filter, handler));
        let names = path.split('/').filter(|part| !part.is_empty() && *part != "v1");
        let names = names.map(|part| part.trim_matches(['{', '}']).replace('.', "_"));
        let id = [method.to_owned()].into_iter().chain(names).collect::<Vec<String>>().join("_");
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters = parts.map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let members = json!({
            "operationId": id,
            "summary": summary,
            "parameters": parameters.collect::<Vec<Value>>(),
            "security": match need {
                Need::Grant(scope, _) => json!([{ "token": [scope.as_str()] }]),
                Need::Nothing | Need::Page => json!([]),
            },
        });
        let mut operation = Operation { members, schemas: &mut self.schemas };
        H::describe(&mut operation);
        self.paths[path][method] = operation.members;
    }

    /// Adds a page or a file of the dashboard: nothing that a program asks for, so it is not described.
    pub(super) fn page<H: Handler<T, Arc<App>>, T: 'static>(
        &mut self,
        path: &str,
        need: Need,
        handler: H,
    ) {
        self.needs.add(path, Some(Method::GET), need);
        self.router = std::mem::take(&mut self.router).route(path, on(MethodFilter::GET, handler));
    }

    /// The OpenAPI document.
    pub(super) fn document(mut self) -> Value {
        let mut schemas = self.schemas.returned.take_definitions(true);
        schemas.extend(self.schemas.taken.take_definitions(true));
        let about = "Signals, channels and runs. Every change takes an `Idempotency-Key`; the same \
                     key gets the first answer again. Lists come in pages: pass `next` as `after`.";
        let version = env!("CARGO_PKG_VERSION");
        json!({
            "openapi": "3.1.0",
            "info": { "title": "Aldis", "version": version, "description": about },
            "security": [{ "token": [] }],
            "paths": self.paths,
            "components": {
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
                "schemas": schemas,
            },
        })
    }
}

/// What is known about one route.
pub(super) struct Operation<'r> {
    members: Value,
    schemas: &'r mut Schemas,
}

impl Operation<'_> {
    fn parameter(&mut self, parameter: Value) {
        if let Value::Array(parameters) = &mut self.members["parameters"] {
            parameters.push(parameter);
        }
    }

    pub(super) fn header(&mut self, name: &str, about: &str) {
        self.parameter(json!({
            "name": name, "in": "header", "required": false, "description": about,
            "schema": { "type": "string", "maxLength": KEY_MAX },
        }));
    }

    /// What is said with this status alone.
    pub(super) fn answer_nothing(&mut self, status: &str, about: &str) {
        self.members["responses"][status] = json!({ "description": about });
    }

    /// What is returned with this status.
    fn answer<T: JsonSchema>(&mut self, status: &str, kind: &str, about: &str) {
        self.answer_nothing(status, about);
        let schema = self.schemas.returned.subschema_for::<T>();
        self.members["responses"][status]["content"] = json!({ kind: { "schema": schema } });
    }
}

/// A handler that says what it takes and returns.
pub(super) trait Describe<D> {
    fn describe(operation: &mut Operation<'_>);
}

/// Something that a handler takes.
pub(super) trait RequestPart {
    fn describe(_operation: &mut Operation<'_>) {}
}

/// Something that a handler returns.
pub(super) trait ResponseBody {
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! describe_handlers {
    ($(($($input:ident),*))*) => {$(
        impl<F, R, O, $($input),*> Describe<($($input,)*)> for F
        where
            F: Fn($($input),*) -> R,
            R: Future<Output = O>,
            O: ResponseBody,
            $($input: RequestPart),*
        {
            fn describe(operation: &mut Operation<'_>) {
                $($input::describe(operation);)*
                O::describe(operation);
            }
        }
    )*};
}
describe_handlers! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

impl RequestPart for AppState {}
impl RequestPart for Asker {}
impl RequestPart for Named {}
impl<T> RequestPart for Path<T> {}

impl RequestPart for HeaderMap {
    fn describe(operation: &mut Operation<'_>) {
        operation.header("Last-Event-ID", "the last event that the client has got");
    }
}

impl RequestPart for SentNothing {
    fn describe(operation: &mut Operation<'_>) {
        operation.header("Idempotency-Key", "makes a repeated request recognisable");
    }
}

impl<T: JsonSchema> RequestPart for Sent<T> {
    fn describe(operation: &mut Operation<'_>) {
        SentNothing::describe(operation);
        let schema = operation.schemas.taken.subschema_for::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        operation.members["requestBody"] = json!({ "required": true, "content": content });
    }
}

impl<T: JsonSchema> RequestPart for Asked<T> {
    fn describe(operation: &mut Operation<'_>) {
        let mut schema = T::json_schema(&mut operation.schemas.taken).to_value();
        let required = schema["required"].take();
        let Value::Object(properties) = schema["properties"].take() else { return };
        for (name, schema) in properties {
            let required = required.as_array().is_some_and(|all| all.contains(&json!(name)));
            operation.parameter(json!({
                "name": name, "in": "query", "required": required,
                "description": schema["description"], "schema": schema,
            }));
        }
    }
}

impl<T: JsonSchema> ResponseBody for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<T>("200", "application/json", "done");
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

impl<T: JsonSchema> ResponseBody for Answer<T> {
    fn describe(operation: &mut Operation<'_>) {
        Json::<Self>::describe(operation);
    }
}

/// Something that was begun now, or by an earlier delivery of the same request.
impl<T: JsonSchema> ResponseBody for (StatusCode, Answer<T>) {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<Answer<T>>("201", "application/json", "begun");
        operation.answer::<Answer<T>>("200", "application/json", "begun before, by this request");
    }
}

impl<T: ResponseBody> ResponseBody for Result<T, ApiError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        for status in ["4XX", "5XX"] {
            operation.answer::<ErrorForm>(status, "application/json", "what is wrong");
        }
    }
}

/// An answer that is no JSON, with its content type.
pub(super) struct TextAnswer<B>(pub(super) &'static str, pub(super) B);

impl<B: IntoResponse> IntoResponse for TextAnswer<B> {
    fn into_response(self) -> Response {
        ([(axum::http::header::CONTENT_TYPE, self.0)], self.1).into_response()
    }
}

impl<B> ResponseBody for TextAnswer<B> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<String>("200", "text/*", "the text");
    }
}

/// Server-sent events with such data.
pub(super) struct EventStream<T>(Body, PhantomData<T>);

impl<T> EventStream<T> {
    pub(super) fn new(body: Body) -> Self {
        Self(body, PhantomData)
    }
}

impl<T> IntoResponse for EventStream<T> {
    fn into_response(self) -> Response {
        TextAnswer("text/event-stream", self.0).into_response()
    }
}

impl<T: JsonSchema> ResponseBody for EventStream<T> {
    fn describe(operation: &mut Operation<'_>) {
        let about = "server-sent events; the schema is that of their `data`";
        operation.answer::<T>("200", "text/event-stream", about);
    }
}

/// A schema inferred from an example, for types that have none of their own.
pub(super) fn schema_of(example: &impl Serialize) -> Schema {
    let mut schema = SchemaSettings::default().into_generator().root_schema_for_value(example);
    if let Ok(schema) = &mut schema {
        for unwanted in ["$schema", "title", "examples"] {
            schema.remove(unwanted);
        }
    }
    schema.unwrap_or_default()
}
