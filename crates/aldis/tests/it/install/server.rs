//! The MCP server: named and allowed with every host that takes one, and proved to answer.

use std::fs;

use serde_json::{Value, json};

use super::Desk;

fn json_of(desk: &Desk, file: &str) -> Value {
    let text =
        fs::read_to_string(desk.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_host_is_told_of_the_server_where_it_looks() {
    let started = json!({"type": "stdio", "command": "aldis", "args": ["mcp"], "alwaysLoad": true});
    let trusted = json!({"command": "aldis", "args": ["mcp"], "trust": true});
    let plain = json!({"command": "aldis", "args": ["mcp"]});
    let words = json!({"type": "local", "command": ["aldis", "mcp"], "enabled": true});
    let tools = json!({"type": "local", "command": "aldis", "args": ["mcp"], "tools": ["*"]});
    for (host, scope, file, path, entry) in [
        ("claude-code", "--project", "home/app/.mcp.json", "/mcpServers/aldis", &started),
        ("claude-code", "--user", "home/.claude.json", "/mcpServers/aldis", &started),
        ("copilot", "--project", "home/app/.mcp.json", "/mcpServers/aldis", &started),
        ("copilot", "--user", "home/.copilot/mcp-config.json", "/mcpServers/aldis", &tools),
        ("cursor", "--project", "home/app/.cursor/mcp.json", "/mcpServers/aldis", &plain),
        ("cursor", "--user", "home/.cursor/mcp.json", "/mcpServers/aldis", &plain),
        ("gemini", "--project", "home/app/.gemini/settings.json", "/mcpServers/aldis", &trusted),
        ("qwen", "--user", "home/.qwen/settings.json", "/mcpServers/aldis", &trusted),
        ("opencode", "--project", "home/app/opencode.json", "/mcp/aldis", &words),
        ("opencode", "--user", "home/.config/opencode/opencode.json", "/mcp/aldis", &words),
    ] {
        let desk = Desk::new();
        let done = desk.ok(&["install", host, scope]);
        assert!(done.stdout.contains("MCP server   aldis mcp\n"), "{host}: {}", done.stdout);
        assert_eq!(json_of(&desk, file).pointer(path), Some(entry), "{host} {scope}");
        let line = desk.ok(&["install", host, scope, "--json"]).json().remove(0);
        assert_eq!((&line["server"], &line["changed"]), (&json!(["aldis", "mcp"]), &json!(false)));
    }
    for (scope, file) in
        [("--project", "home/app/.codex/config.toml"), ("--user", "home/.codex/config.toml")]
    {
        let desk = Desk::new();
        desk.ok(&["install", "codex", scope]);
        let text = fs::read_to_string(desk.path(file)).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let server = &table["mcp_servers"]["aldis"];
        assert_eq!(
            (server["command"].as_str(), server["args"][0].as_str()),
            (Some("aldis"), Some("mcp"))
        );
        let variables: Vec<_> =
            server["env_vars"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
        assert!(
            variables.contains(&"ALDIS_RUN") && variables.contains(&"ALDIS_STATE_DIR"),
            "{text}"
        );
    }
}

/// Without a person Claude Code calls only what one person's settings allow.
#[test]
fn claude_code_may_call_the_tools() {
    for (scope, settings, approved) in [
        ("--project", "home/app/.claude/settings.local.json", true),
        ("--local", "home/app/.claude/settings.local.json", false),
        ("--user", "home/.claude/settings.json", false),
    ] {
        let desk = Desk::new();
        desk.ok(&["install", "claude-code", scope]);
        let settings = json_of(&desk, settings);
        assert_eq!(settings["permissions"]["allow"], json!(["mcp__aldis"]), "{scope}");
        assert_eq!(settings["enabledMcpjsonServers"] == json!(["aldis"]), approved, "{scope}");
    }
    let desk = Desk::new();
    desk.ok(&["install", "claude-code", "--local"]);
    let state = json_of(&desk, "home/.claude.json");
    let project = desk.path("home/app").display().to_string();
    assert_eq!(state["projects"][&project]["mcpServers"]["aldis"]["command"], "aldis", "{state}");
}

#[test]
fn the_hook_can_come_alone() {
    for host in ["claude-code", "codex", "gemini", "opencode"] {
        let desk = Desk::new();
        let before = desk.picture();
        let done = desk.ok(&["install", host, "--no-mcp"]);
        assert!(!done.stdout.contains("MCP"), "{}", done.stdout);
        let files = desk.picture().into_values().flatten();
        assert!(files.into_iter().all(|file| !String::from_utf8_lossy(&file).contains("mcp")));
        desk.ok(&["uninstall", host]);
        assert_eq!(desk.picture(), before, "{host}");
        // The server comes later, and both go together.
        desk.ok(&["install", host, "--no-mcp"]);
        desk.ok(&["install", host]);
        desk.ok(&["uninstall", host]);
        assert_eq!(desk.picture(), before, "{host}");
    }
}

#[test]
fn what_stands_in_these_files_comes_back_byte_for_byte() {
    for (host, scope, file, text) in [
        ("claude-code", "--project", "home/app/.mcp.json", "{\"mcpServers\": { } /* mine */}"),
        (
            "claude-code",
            "--user",
            "home/.claude.json",
            "{\n  \"projects\": {\"/a\": {}}, \"x\": 1 }",
        ),
        ("claude-code", "--local", "home/.claude.json", "{\n\t\"projects\": {}\n}\n"),
        ("codex", "--user", "home/.codex/config.toml", "model = \"x\" # mine\n\n[a]\nb = 1"),
        ("gemini", "--project", "home/app/.gemini/settings.json", "{\r\n  \"mcpServers\": {}\r\n}"),
        ("opencode", "--project", "home/app/opencode.jsonc", "{\n  // mine\n  \"mcp\": {},\n}\n"),
    ] {
        let desk = Desk::new();
        desk.0.write(file, text);
        let before = desk.picture();
        desk.ok(&["install", host, scope]);
        assert!(fs::read_to_string(desk.path(file)).unwrap().contains("\"mcp\""), "{file}");
        desk.ok(&["uninstall", host, scope]);
        assert_eq!(desk.picture(), before, "{host} {scope} {file}");
    }
}

#[test]
fn somebody_elses_server_stays_and_nothing_is_half_done() {
    for (host, file, text) in [
        (
            "claude-code",
            "home/app/.mcp.json",
            "{\"mcpServers\": {\"aldis\": {\"command\": \"x\"}}}\n",
        ),
        ("codex", "home/app/.codex/config.toml", "[mcp_servers.aldis]\ncommand = \"x\"\n"),
    ] {
        let desk = Desk::new();
        desk.0.write(file, text);
        let before = desk.picture();
        let done = desk.run(&["install", host]);
        assert_eq!(done.code, 2, "{}", done.stdout);
        assert!(done.stderr.contains("another MCP server is named `aldis`"), "{}", done.stderr);
        assert_eq!(desk.picture(), before, "{host}");
        desk.ok(&["install", host, "--no-mcp"]);
        desk.ok(&["uninstall", host]);
        assert_eq!(desk.picture(), before, "{host}");
    }
}

/// Claude Code and Copilot CLI read the same file of a project.
#[test]
fn a_server_goes_with_the_last_host_that_reads_it() {
    let desk = Desk::new();
    let before = desk.picture();
    desk.ok(&["install", "claude-code"]);
    let alone = desk.picture();
    desk.ok(&["install", "copilot"]);
    desk.ok(&["uninstall", "copilot"]);
    assert_eq!(desk.picture(), alone);
    desk.ok(&["install", "copilot"]);
    desk.ok(&["uninstall", "claude-code"]);
    assert!(desk.path("home/app/.mcp.json").exists());
    desk.ok(&["uninstall", "copilot"]);
    assert_eq!(desk.picture(), before);
}

#[test]
fn doctor_proves_that_the_tools_are_there() {
    let tools = r#"echo '{"jsonrpc":"2.0","id":1,"result":{}}'; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"complete"},{"name":"status"}]}}'"#;
    for (answer, status, message) in [
        (tools, "ok", "complete, status"),
        ("echo hello", "failed", "did not list `complete`: it printed `hello`"),
        ("exec sleep 60", "failed", "did not answer within 5 s"),
    ] {
        let desk =
            Desk::with_program(&format!("cat > /dev/null\nif [ \"$1\" = mcp ]; then {answer}; fi"));
        desk.ok(&["install", "claude-code", "--user"]);
        let check = desk.check(&["claude-code"], "tools");
        assert_eq!(check["status"], status, "{check}");
        assert!(check["message"].as_str().unwrap().contains(message), "{check}");
    }
    // What was taken away is missed, and what switches us off is named.
    let desk = Desk::with_program("cat > /dev/null");
    desk.ok(&["install", "claude-code", "--user", "--no-mcp"]);
    let check = desk.check(&["claude-code"], "server");
    assert_eq!(
        (&check["status"], &check["fix"]),
        (&json!("note"), &json!("aldis install claude-code --user"))
    );
    desk.ok(&["install", "claude-code", "--user"]);
    let settings = desk.path("home/.claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("mcp__aldis", "mcp__other")).unwrap();
    let check = desk.check(&["claude-code"], "allowed");
    assert_eq!(check["fix"], "aldis install claude-code --user", "{check}");
    let flags = desk.check(&["claude-code"], "flags")["message"].to_string();
    for flag in ["--bare", "--safe-mode", "--strict-mcp-config", "--setting-sources"] {
        assert!(flags.contains(flag), "{flags}");
    }
    desk.ok(&["install", "codex", "--user"]);
    let config = desk.path("home/.codex/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}enabled = false\n")).unwrap();
    let check = desk.check(&["codex"], "server");
    assert!(check["message"].as_str().unwrap().contains("is switched off"), "{check}");
}
