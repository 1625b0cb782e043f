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
use aldis_machine::calls::Call;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub(crate) use self::host::{CallerSource, of_variables};
use crate::app::calls::answer::{CallReply, RefusalRule, Refused};
use crate::app::calls::{self, caller::Caller, elsewhere};
use crate::error::CommandError;
use crate::notify;
use crate::settings::clock;
use crate::settings::remote::{CALL_PATIENCE, Remote};

/// The tools, as clients see them.
const TOOLS: &str = include_str!("mcp/tools.json");
/// Makes Claude Code show a tool at once instead of only its name.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";
const INSTRUCTIONS: &str = "Tools to report to Aldis, which keeps you working until the job is \
    done: complete, progress, blocked, ask_human, verdict, end_turn; status shows what is expected. \
    Prefer a call to writing the same in your message. A call does not end your turn: end it when \
    the answer says so.";

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
    /// The server that keeps the runs, if that is another one.
    remote: Option<Arc<Remote>>,
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
    pub(crate) fn of_host(
        state_dir: Option<PathBuf>,
        known: CallerSource,
        remote: Option<Remote>,
    ) -> Self {
        let engine = Mutex::new(None);
        let store = Arc::new(StoreOfCalls { state_dir, engine });
        Self { store, known, remote: remote.map(Arc::new) }
    }

    /// A server that shares the store of others.
    pub(crate) fn of_engine(engine: Arc<Engine>, known: CallerSource) -> Self {
        let engine = Mutex::new(Some(engine));
        Self { store: Arc::new(StoreOfCalls { state_dir: None, engine }), known, remote: None }
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

    /// Sends something to the server that keeps the runs, on a thread that may wait.
    async fn post<T: DeserializeOwned + Send + 'static>(
        &self,
        remote: &Arc<Remote>,
        path: &'static str,
        body: Value,
    ) -> Result<T, String> {
        let remote = Arc::clone(remote);
        let sent = tokio::task::spawn_blocking(move || remote.post(path, &body, CALL_PATIENCE));
        match sent.await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads something about the caller's run, here or at the server that keeps it.
    async fn read(
        &self,
        caller: Caller,
        what: &'static str,
        name: String,
    ) -> Result<Value, String> {
        if let Some(remote) = &self.remote {
            let body = elsewhere::read(&caller, what, &name);
            let mut answer: Map<String, Value> = self.post(remote, elsewhere::READ, body).await?;
            return Ok(answer.remove("result").unwrap_or_default());
        }
        self.with_store(caller, move |engine, caller| read(engine, caller, what, &name)).await?
    }

    /// Reports something, here or at the server that keeps the run.
    async fn report(&self, caller: Caller, call: Call) -> CallReply {
        let reported = match &self.remote {
            Some(remote) => {
                let body = elsewhere::call(None, &caller, &calls::without_secrets(&call));
                self.post(remote, elsewhere::CALLS, body).await
            }
            None => {
                let report = move |engine: &Engine, caller: &Caller| {
                    calls::call(engine, clock::wall(), caller, call)
                };
                self.with_store(caller, report).await
            }
        };
        reported.unwrap_or_else(|error| calls::unavailable(&error))
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
            let status = self.read(caller, STATUS, String::new()).await;
            let status = status.unwrap_or_else(|error| json!(calls::unavailable(&error)));
            return Ok(CallToolResult::structured(status).into());
        }
        let mut arguments = request.arguments.unwrap_or_default();
        arguments.insert("tool".to_owned(), name.clone().into());
        let call = match serde_json::from_value(Value::Object(arguments)) {
            Ok(call) => call,
            Err(error) => {
                let remedy = format!("call `{name}` again with the arguments of its schema");
                let refused = Refused::new(RefusalRule::BadArguments, error.to_string(), remedy);
                let reply = CallReply::refused(None, refused);
                return Ok(CallToolResult::structured_error(json!(reply)).into());
            }
        };
        let reply = self.report(caller, call).await;
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
        let read = self.read(self.caller(&context), RESOURCE, request.uri).await;
        let found: ReadResourceResult = understood(read)?;
        Ok(found.into())
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
        let read = self.read(self.caller(&context), PROMPT, request.name).await;
        let found: GetPromptResult = understood(read)?;
        Ok(found.into())
    }
}

/// What can be read.
const STATUS: &str = "status";
const RESOURCE: &str = "resource";
const PROMPT: &str = "prompt";

/// Reads something about the caller's run.
///
/// # Errors
///
/// Says in words that there is no such thing, or that the store failed.
pub(crate) fn read(
    engine: &Engine,
    caller: &Caller,
    what: &str,
    name: &str,
) -> Result<Value, String> {
    let words = |error: ErrorData| error.message.into_owned();
    match what {
        STATUS => Ok(answers::status(engine, caller)),
        RESOURCE => {
            answers::resource(engine, caller, name).map(|found| json!(found)).map_err(words)
        }
        PROMPT => answers::prompt(engine, caller, name).map(|found| json!(found)).map_err(words),
        other => Err(format!("there is no `{other}` to be read")),
    }
}

/// Gives what was read the form of the protocol.
fn understood<T: DeserializeOwned>(read: Result<Value, String>) -> Result<T, ErrorData> {
    let read = read.map_err(|error| ErrorData::invalid_params(error, None))?;
    serde_json::from_value(read).map_err(|error| ErrorData::internal_error(error.to_string(), None))
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
        let server =
            AldisServer::of_host(state_dir, CallerSource::of_process()?, Remote::of_environment()?);
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
