//! The MCP server: agents report by calling tools.
//!
//! The protocol is the crate `rmcp`'s, in both of its eras; what tools do is `app::calls`'. Nothing
//! here decides anything: it says who calls, by what the host tells, and passes the call on. The same
//! handler serves `aldis mcp` on standard input and output, and `/mcp` of `aldis serve`.

mod answers;
mod host;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use aldis_engine::Engine;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

pub(crate) use self::host::{CallerSource, HttpCaller, of_variables};
use crate::app::calls::answer::{CallReply, Refused, Rule};
use crate::app::calls::{self, caller::Caller};
use crate::error::CommandError;
use crate::notify;
use crate::settings::clock;

/// The tools, as clients see them.
const TOOLS: &str = include_str!("mcp/tools.json");
/// Makes Claude Code show a tool at once instead of only its name.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
const INSTRUCTIONS: &str = "Tools to report to Aldis, which keeps you working until the job is \
    done: complete, progress, blocked, ask_human, verdict, end_turn; status shows what is expected. \
    Prefer a call to writing the same in your message. A call is no end: end your turn when its \
    answer says so.";

static LISTED: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let mut tools: Vec<Tool> = serde_json::from_str(TOOLS).unwrap_or_default();
    for tool in &mut tools {
        let always = Map::from_iter([(ALWAYS_LOAD.to_owned(), Value::Bool(true))]);
        tool.meta = serde_json::from_value(Value::Object(always)).ok();
    }
    tools
});

/// One server for any number of clients.
#[derive(Clone)]
pub(crate) struct AldisServer {
    store: Arc<StoreOfCalls>,
    known: CallerSource,
}

/// The store, opened at the first call that needs it and again after it failed.
struct StoreOfCalls {
    state_dir: Option<PathBuf>,
    engine: Mutex<Option<Arc<Engine>>>,
}

impl StoreOfCalls {
    fn engine(&self) -> Result<Arc<Engine>, CommandError> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*engine {
            return Ok(Arc::clone(engine));
        }
        let opened = Arc::new(notify::open_engine(self.state_dir.as_deref())?);
        *engine = Some(Arc::clone(&opened));
        Ok(opened)
    }
}

impl AldisServer {
    /// A server of its own store, for one host.
    pub(crate) fn of_host(state_dir: Option<PathBuf>, known: CallerSource) -> Self {
        let engine = Mutex::new(None);
        Self { store: Arc::new(StoreOfCalls { state_dir, engine }), known }
    }

    /// A server that shares the store of others.
    pub(crate) fn of_engine(engine: Arc<Engine>, known: CallerSource) -> Self {
        let engine = Mutex::new(Some(engine));
        Self { store: Arc::new(StoreOfCalls { state_dir: None, engine }), known }
    }

    /// Does something with the store on a thread that may wait for it.
    async fn with_store<T: Send + 'static>(
        &self,
        caller: Caller,
        act: impl FnOnce(&Engine, &Caller) -> T + Send + 'static,
    ) -> Result<T, String> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || {
            let engine = store.engine().map_err(|error| error.to_string())?;
            Ok(act(&engine, &caller))
        });
        done.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        self.known.caller(&context.meta, &context.extensions)
    }
}

impl ServerHandler for AldisServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("aldis", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: LISTED.clone(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.into_owned();
        if !LISTED.iter().any(|tool| tool.name == *name) {
            let message = format!("there is no tool `{name}`");
            return Err(ErrorData::invalid_params(message, None));
        }
        let caller = self.caller(&context);
        if name == "status" {
            let status = self.with_store(caller, answers::status).await;
            let status = status.unwrap_or_else(|error| json!(calls::unavailable(&error)));
            return Ok(CallToolResult::structured(status).into());
        }
        let mut arguments = request.arguments.unwrap_or_default();
        arguments.insert("tool".to_owned(), name.clone().into());
        let call = match serde_json::from_value(Value::Object(arguments)) {
            Ok(call) => call,
            Err(error) => {
                let remedy = format!("call `{name}` again with the arguments of its schema");
                let refused = Refused::new(Rule::BadArguments, error.to_string(), remedy);
                let reply = CallReply::refused(None, refused);
                return Ok(CallToolResult::structured_error(json!(reply)).into());
            }
        };
        let reply = self
            .with_store(caller, move |engine, caller| {
                calls::call(engine, clock::wall(), caller, call)
            })
            .await
            .unwrap_or_else(|error| calls::unavailable(&error));
        Ok(CallToolResult::structured(json!(reply)).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult {
            resources: answers::resources(),
            ..ListResourcesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (caller, uri) = (self.caller(&context), request.uri);
        let read =
            self.with_store(caller, move |engine, caller| answers::resource(engine, caller, &uri));
        let found = read.await.map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(found?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult { prompts: answers::prompts(), ..ListPromptsResult::default() })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (caller, name) = (self.caller(&context), request.name);
        let got =
            self.with_store(caller, move |engine, caller| answers::prompt(engine, caller, &name));
        let found = got.await.map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(found?.into())
    }
}

/// Serves one host on standard input and output, until that ends.
///
/// # Errors
///
/// Fails if there is no runtime, or if the host does not speak the protocol.
pub(crate) fn serve_stdio(state_dir: Option<PathBuf>) -> Result<(), CommandError> {
    let failed = |error: io::Error| CommandError::new(format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let server = AldisServer::of_host(state_dir, CallerSource::of_process()?);
        match server.serve(rmcp::transport::stdio()).await {
            Ok(running) => {
                let _ended = running.waiting().await;
                Ok(())
            }
            // A host that only looked whether there is a server.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(CommandError::new(format!("the client does not speak MCP: {error}"))),
        }
    })
}
