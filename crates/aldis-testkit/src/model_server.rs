//! A model that says what a test wants: the servers the real hosts talk to, on loopback.
//!
//! It speaks Anthropic Messages and OpenAI Responses, streaming and not, and keeps every request, so
//! that a test can ask what the model was told. Only requests of the main agent advance the script:
//! hosts also ask for titles, quotas and token counts, and those get a harmless answer. One thread
//! accepts, one serves each connection, one request per connection; everything has a limit.

mod anthropic;
mod http;
mod recorded;
mod responses;
mod script;
mod tool;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::json;

use self::http::{HttpRequest, Response};
pub use self::recorded::{Recorded, Speaker};
pub use self::script::{Script, ScriptedCall, ScriptedReply, ServiceError};

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// If no port can be had.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let conversation = Mutex::new(Conversation { script, requests: Vec::new() });
        let shared = Arc::new(Shared { conversation, stopping: AtomicBool::new(false) });
        let for_thread = Arc::clone(&shared);
        let accepting = Some(thread::spawn(move || accept(&listener, &for_thread)));
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens, without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was asked so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.conversation().requests.clone()
    }

    /// What the main agent asked: one request for each reply of the script.
    pub fn main_requests(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(|request| request.speaker == Speaker::Main);
        requests
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Only a connection wakes the thread that waits for one.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            // A thread that panicked has nothing more to say, and a drop must not panic.
            drop(accepting.join());
        }
    }
}

#[derive(Debug)]
struct Shared {
    conversation: Mutex<Conversation>,
    stopping: AtomicBool,
}

impl Shared {
    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Conversation {
    script: Script,
    requests: Vec<Recorded>,
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // Not joined: its reads and writes have a time limit, and it borrows nothing.
        thread::spawn(move || serve(stream, &shared));
    }
}

/// Answers one request. A host that goes away in the middle is none of our business.
fn serve(mut stream: TcpStream, shared: &Shared) {
    if let Ok(request) = HttpRequest::read(&stream) {
        let head_only = request.method == "HEAD";
        drop(answer(request, shared).write(&mut stream, head_only));
    }
}

fn answer(request: HttpRequest, shared: &Shared) -> Response {
    let recorded = Recorded::new(request);
    let mut conversation = shared.conversation();
    let serial = conversation.requests.len();
    if serial >= REQUESTS_MAX {
        // A status that no host tries again: a loop that does not end fails.
        let message = format!("the limit of {REQUESTS_MAX} requests is reached");
        return Response::json(
            400,
            &json!({
                "type": "error",
                "error": {"type": "invalid_request_error", "message": message},
            }),
        );
    }
    let reply = match recorded.speaker {
        Speaker::Main => conversation.script.next_reply(),
        Speaker::Subagent => conversation.script.subagent_reply(),
        Speaker::Auxiliary => ScriptedReply::says("{\"title\": \"scripted\"}"),
        Speaker::Probe => {
            let response = probe(&recorded);
            conversation.requests.push(recorded);
            return response;
        }
    };
    let response = match (&reply.error, recorded.endpoint()) {
        (Some(ServiceError { status, body }), _) => Response::json(*status, body),
        (None, "/v1/messages") => anthropic::response(serial, &reply, &recorded.body),
        (None, _) => responses::response(serial, &reply, &recorded.body),
    };
    conversation.requests.push(recorded);
    response
}

/// Answers what is not a question to the model.
fn probe(recorded: &Recorded) -> Response {
    match recorded.endpoint() {
        "/v1/messages/count_tokens" => Response::json(200, &json!({"input_tokens": 1})),
        "/v1/models" => Response::json(200, &json!({"data": [], "models": []})),
        "/" => Response::json(200, &json!({})),
        other => {
            let message = format!("nothing is served at {other}");
            let error = json!({"type": "not_found_error", "message": message});
            Response::json(404, &json!({"type": "error", "error": error}))
        }
    }
}

const REQUESTS_MAX: usize = 1000;

#[cfg(test)]
mod tests;
