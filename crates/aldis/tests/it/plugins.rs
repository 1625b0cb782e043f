//! The plugins that are written in JavaScript, in the hands of a fake host.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

#[expect(clippy::print_stderr, reason = "a test that was skipped must say so")]
fn skip() {
    assert!(std::env::var_os("CI").is_none(), "node is not installed");
    eprintln!("skipped: node is not installed");
}

/// Installs a plugin whose program is a stub, and runs a script that plays the host.
fn play(host: &str, plugin: &str, script: &str) {
    if Command::new("node").arg("--version").output().is_err() {
        return skip();
    }
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["install", host]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let stub = sandbox.write(
        "bin/aldis",
        "#!/bin/sh\ncat >> \"$SEEN\"\necho >> \"$SEEN\"\necho \"$@\" >> \"$SEEN\"\n. \"$ANSWER\"\n",
    );
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    // OpenCode loads `.js` as a module whatever a package says; node wants the other name.
    let module = sandbox.path().join("plugin.mjs");
    fs::copy(sandbox.path().join(plugin), &module).unwrap();
    let file = sandbox.write("host.mjs", script);
    let output = Command::new("node")
        .arg(file)
        .env("PLUGIN", module)
        .env("HOST", host)
        .env("PATH", format!("{}:/usr/bin:/bin", sandbox.path().join("bin").display()))
        .env("SEEN", sandbox.path().join("seen"))
        .env("ANSWER", sandbox.path().join("answer"))
        .current_dir(sandbox.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn opencode_goes_on_when_told_to() {
    play("opencode", ".opencode/plugins/aldis.js", include_str!("../js/opencode.mjs"));
}

#[test]
fn kilo_goes_on_when_told_to() {
    play("kilo", ".kilo/plugins/aldis.js", include_str!("../js/opencode.mjs"));
}

#[test]
fn pi_goes_on_when_told_to() {
    play("pi", ".pi/extensions/aldis.js", include_str!("../js/pi.mjs"));
}

#[test]
fn openclaw_goes_on_when_told_to() {
    play("openclaw", ".openclaw/extensions/aldis/index.js", include_str!("../js/openclaw.mjs"));
}

#[test]
fn the_claude_code_plugin_registers_what_install_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: PathBuf| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["install", "claude-code"]).code, 0);
    let installed = read(sandbox.path().join(".claude/settings.json"));
    let folder = root.join("integrations/claude-code");
    assert_eq!(read(folder.join("hooks/hooks.json"))["hooks"], installed["hooks"]);
    let server = read(sandbox.path().join(".mcp.json"));
    assert_eq!(read(folder.join(".mcp.json")), server);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(read(folder.join(".claude-plugin/plugin.json"))["version"], version);
    let package = root.join("crates/aldis/src/hosts/plugins/openclaw.package.json");
    assert_eq!(read(package)["version"], version);
    let source = &read(root.join(".claude-plugin/marketplace.json"))["plugins"][0]["source"];
    assert_eq!(source, "./integrations/claude-code");
}
