//! The table of the API: every route with what it needs of whoever asks. The router, the description and
//! the guard are built from it, so that there is no route without a row.

use aldis_machine::HumanCommand;
use axum::http::Method;

use super::describe::{Routes, TextAnswer};
use super::{channels, dashboard, items, pages, remote, runs, signals, system};
use crate::server::access::need::Need::{self, Grant, Nothing, Page};
use crate::server::access::need::Reach::{Everywhere, Project, Request, Run};
use crate::server::mcp;
use crate::settings::tokens::Scope::{Admin, Coordinate, Observe, Signal, Work};

const READ_RUN: Need = Grant(Observe, Run);
const READ_PROJECT: Need = Grant(Observe, Project);
const COMMAND: Need = Grant(Coordinate, Run);

/// Everything that can be asked.
pub(super) fn routes() -> Routes {
    let mut routes = Routes::new();
    texts(&mut routes);
    of_channels(&mut routes);
    of_runs(&mut routes);
    of_commands(&mut routes);
    of_everything(&mut routes);
    of_the_dashboard(&mut routes);
    of_other_machines(&mut routes);
    of_the_server(&mut routes);
    routes.needs.add(mcp::PATH, None, Grant(Signal, Request));
    routes
}

fn texts(routes: &mut Routes) {
    let need = Grant(Observe, Request);
    let summary = "Find the signals in a text or transcript";
    routes.add("post", "/v1/scan", need, summary, signals::scan);
    let summary = "Explain the signals and near misses in a text or transcript";
    routes.add("post", "/v1/explain", need, summary, signals::explain);
}

fn of_channels(routes: &mut Routes) {
    let path = "/v1/channels";
    routes.add("get", path, READ_PROJECT, "List the open channels", channels::list);
    routes.add("post", path, Grant(Coordinate, Request), "Open a channel", channels::create);
    let path = "/v1/channels/{channel}";
    let summary = "Show a channel: who has the turn, queue, agents and history";
    routes.add("get", path, READ_RUN, summary, channels::show);
    let path = "/v1/channels/{channel}/messages";
    routes.add("post", path, Grant(Signal, Run), "Take messages of an agent", channels::say);
    let path = "/v1/channels/{channel}/human";
    routes.add(
        "post",
        path,
        COMMAND,
        "Take a message of a human",
        channels::happen::<channels::HumanMessage>,
    );
    let path = "/v1/channels/{channel}/queue";
    routes.add(
        "post",
        path,
        COMMAND,
        "Add an agent to the queue",
        channels::happen::<channels::NewAgent>,
    );
    let path = "/v1/channels/{channel}/queue/{agent}";
    routes.add("delete", path, COMMAND, "Take an agent out of the queue", channels::remove);
    let path = "/v1/channels/{channel}/crashed";
    routes.add(
        "post",
        path,
        Grant(Work, Run),
        "Report that an agent is gone",
        channels::happen::<channels::Crash>,
    );
    let path = "/v1/channels/{channel}/next";
    routes.add(
        "post",
        path,
        COMMAND,
        "Give the turn to an agent",
        channels::happen::<channels::NextAgent>,
    );
    let path = "/v1/channels/{channel}/config";
    routes.add(
        "put",
        path,
        COMMAND,
        "Change how a channel is run",
        channels::happen::<channels::NewConfig>,
    );
    let path = "/v1/turns/state";
    routes.add("get", path, READ_PROJECT, "Export all channels as a state file", channels::export);
    let summary = "Import channels from a state file";
    routes.add("post", path, Grant(Admin, Everywhere), summary, channels::import);
}

fn of_runs(routes: &mut Routes) {
    let path = "/v1/runs";
    routes.add("get", path, READ_PROJECT, "List runs, the latest first", runs::list);
    let need = Grant(Coordinate, Request);
    routes.add("post", path, need, "Begin a run of a machine", runs::create);
    routes.add("get", "/v1/runs/{run}", READ_RUN, "Show a run", runs::show);
    let summary = "List what was decided about a run, the newest first, and why";
    routes.add("get", "/v1/runs/{run}/why", READ_RUN, summary, runs::why);
    let summary = "List the tasks of a delivery; other runs have none";
    routes.add("get", "/v1/runs/{run}/tasks", READ_RUN, summary, runs::tasks);
    let path = "/v1/runs/{run}/events";
    routes.add("get", path, READ_RUN, "Read the journal of a run", runs::journal);
    let summary = "Let a run take an event, and get the effects";
    routes.add("post", path, Grant(Work, Run), summary, runs::step);
    let summary = "Read what the agents of a run write, as server-sent events";
    routes.add("get", "/v1/runs/{run}/output", READ_RUN, summary, runs::read_output);
}

fn of_commands(routes: &mut Routes) {
    let pause = |app, asker, id, body| runs::command(HumanCommand::Pause, app, asker, id, body);
    routes.add("post", "/v1/runs/{run}/pause", COMMAND, "Pause a run", pause);
    let resume = |app, asker, id, body| runs::command(HumanCommand::Resume, app, asker, id, body);
    routes.add("post", "/v1/runs/{run}/resume", COMMAND, "Resume a run", resume);
    let abort = |app, asker, id, body| runs::command(HumanCommand::Abort, app, asker, id, body);
    routes.add("post", "/v1/runs/{run}/abort", COMMAND, "End a run", abort);
    let summary = "Answer a question of a run";
    routes.add("post", "/v1/runs/{run}/answer", COMMAND, summary, runs::answer);
    let summary = "Tell the agents of a run something";
    routes.add("post", "/v1/runs/{run}/tell", COMMAND, summary, runs::tell);
}

fn of_everything(routes: &mut Routes) {
    let summary = "List the questions that wait for a human";
    routes.add("get", "/v1/questions", READ_PROJECT, summary, runs::questions);
    let summary = "List the decisions about all runs, the newest first";
    routes.add("get", "/v1/decisions", Grant(Observe, Everywhere), summary, runs::decisions);
    let summary = "Follow what is decided, as server-sent events; `Last-Event-ID` resumes";
    routes.add("get", "/v1/events", Grant(Observe, Request), summary, runs::follow);
}

fn of_the_dashboard(routes: &mut Routes) {
    let summary = "Show what needs a person, what is running and what ended";
    routes.add("get", "/v1/overview", READ_PROJECT, summary, dashboard::overview);
    let summary = "Tell everything about a run";
    routes.add("get", "/v1/runs/{run}/details", READ_RUN, summary, dashboard::details);
    let summary = "Show workers, what waits for one, and who coordinates what";
    routes.add("get", "/v1/fleet", Grant(Observe, Everywhere), summary, dashboard::fleet);
    let summary = "Report what happened in a run, as one HTML file or as Markdown";
    routes.add("get", "/v1/runs/{run}/report", READ_RUN, summary, dashboard::reported);
    let summary = "Take something off the list of what needs a person";
    routes.add("post", "/v1/runs/{run}/dismiss", COMMAND, summary, dashboard::dismiss);
    let summary = "Show what the link of a notice is about";
    routes.add("get", "/v1/item", Nothing, summary, items::show);
    let summary = "Act on it, which uses the link up";
    routes.add("post", "/v1/item", Nothing, summary, items::act);
    for (path, kind, text) in pages::PAGES {
        routes.page(path, Page, move || async move { TextAnswer(kind, text) });
    }
    for (path, kind, text) in pages::open_pages() {
        routes.page(path, Nothing, move || async move { TextAnswer(kind, text) });
    }
    let summary = "Log a browser in by a token or by a link";
    routes.add("post", "/v1/login", Nothing, summary, pages::log_in);
    let need = Grant(Observe, Request);
    routes.add("post", "/v1/logout", need, "Sign a browser out", pages::log_out);
}

fn of_other_machines(routes: &mut Routes) {
    let summary = "Take a call of a hook on another machine, and answer for its host";
    routes.add("post", "/v1/hooks", Grant(Work, Request), summary, remote::hook);
    let summary = "Take a report of an agent on another machine";
    routes.add("post", "/v1/calls", Grant(Signal, Request), summary, remote::call);
    let summary = "Say how the run of an agent on another machine is";
    routes.add("post", "/v1/calls/read", Grant(Signal, Request), summary, remote::read);
    let summary = "Exchange an identity token of CI or a cluster for a token";
    routes.add("post", "/v1/tokens/exchange", Nothing, summary, remote::exchange);
}

fn of_the_server(routes: &mut Routes) {
    let summary = "Say whether the process answers; needs no token";
    let healthy = || async { TextAnswer("text/plain", "ok\n") };
    routes.add("get", "/healthz", Nothing, summary, healthy);
    let summary = "Say whether the server can do its work; needs no token";
    routes.add("get", "/readyz", Nothing, summary, system::ready);
    let need = Grant(Observe, Everywhere);
    routes.add("get", "/metrics", need, "Metrics for Prometheus", system::metrics);
    let summary = "Say what is wrong, with runs and with the server";
    routes.add("get", "/v1/health", need, summary, system::health);
    let need = Grant(Observe, Request);
    routes.add("get", "/openapi.json", need, "This description", system::openapi);
}

/// Returns the method of this name.
pub(super) fn method(name: &str) -> Method {
    match name {
        "delete" => Method::DELETE,
        "post" => Method::POST,
        "put" => Method::PUT,
        _ => Method::GET,
    }
}
