//! The OpenAPI document, made from the table that makes the router.

use serde_json::{Map, Value, json};

use super::{Route, routes};

/// Describes every request.
pub(in crate::server) fn document() -> Value {
    let mut paths = Map::new();
    for route in routes() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            methods.insert(route.method.to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Aldis",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Signals, channels and runs. Every change takes an `Idempotency-Key`; \
                            the same key gets the first answer again.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": { "error": {
                        "type": "object",
                        "required": ["code", "message"],
                        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
                    } },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = path_parameters(route.path).collect();
    for (name, about) in route.query {
        let (name, required) = named(name);
        parameters.push(json!({
            "name": name, "in": "query", "required": required, "description": about,
            "schema": { "type": "string" },
        }));
    }
    let changes = route.method != "get";
    if changes {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "makes a repeated request recognisable",
            "schema": { "type": "string", "maxLength": super::request::KEY_MAX },
        }));
    }
    let error = json!({ "description": "what was wrong", "content": { "application/json": {
        "schema": { "$ref": "#/components/schemas/Error" } } } });
    let mut operation = json!({
        "summary": route.summary,
        "parameters": parameters,
        "responses": { "2XX": { "description": "done" }, "4XX": error, "5XX": error },
    });
    if let (Value::Object(members), true) = (&mut operation, changes && route.method != "delete") {
        let content = json!({ "application/json": { "schema": body(route) } });
        members.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
    }
    operation
}

/// The schema of a body, as far as the table says it.
fn body(route: &Route) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, about) in route.body {
        let (name, needed) = named(name);
        properties.insert(name.to_owned(), json!({ "description": about }));
        if needed {
            required.push(name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A name and whether it is needed.
fn named(name: &str) -> (&str, bool) {
    name.strip_suffix('?').map_or((name, true), |name| (name, false))
}

fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    parts.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    })
}
