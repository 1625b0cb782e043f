//! What is added comes out again, and nothing else changes.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

const ENTRY: &str = "command = \"aldis\"\nargs = [\"mcp\"]\nenv_vars = [\"ALDIS_RUN\"]\n";

fn table() -> ServerPart {
    ServerPart::Table {
        entry: |Invocation { program, .. }| ENTRY.replace("\"aldis\"", &format!("{program:?}")),
    }
}

fn text(bytes: Result<Vec<u8>, EditError>) -> String {
    String::from_utf8(bytes.unwrap()).unwrap()
}

fn add(part: &ServerPart, before: &str) -> String {
    text(part.add("aldis", Some(before.as_bytes())))
}

fn remove(part: &ServerPart, before: &str) -> String {
    text(part.remove(before.as_bytes()))
}

#[test]
fn tables_come_and_go() {
    let files = [
        "",
        "model = \"x\"\n",
        "# mine\nmodel = \"x\" # last\n\n[projects.\"/home/dev\"]\ntrust_level = \"trusted\"\n",
        "[mcp_servers.other]\ncommand = \"other\"\n",
        "[mcp_servers]\n[mcp_servers.other]\ncommand = \"other\"\n# the end\n",
        "model = \"x\"\r\n[a]\r\nb = 1\r\n",
    ];
    for file in files {
        let added = add(&table(), file);
        assert!(added.starts_with(file), "{added}");
        assert_eq!(table().program(added.as_bytes()).unwrap().as_deref(), Some("aldis"));
        assert_eq!(add(&table(), &added), added);
        assert_eq!(remove(&table(), &added), file);
        assert_eq!(remove(&table(), file), file);
        let ends = if file.contains('\r') { "\r\n" } else { "\n" };
        assert_eq!(added.matches('\n').count(), added.matches(ends).count(), "{added:?}");
        // Another program takes the place of the first.
        let moved = text(table().add("/opt/aldis", Some(added.as_bytes())));
        assert_eq!(table().program(moved.as_bytes()).unwrap().as_deref(), Some("/opt/aldis"));
        assert_eq!(remove(&table(), &moved), file);
    }
}

#[test]
fn what_was_added_to_a_table_goes_with_it_and_what_follows_stays() {
    let edited = "a = 1\n\n[mcp_servers.aldis]\ncommand = \"aldis\"\nargs = [\"mcp\"]\nenabled = true\n\n\
                  [mcp_servers.aldis.tools.complete]\napproval_mode = \"approve\"\n\n# about b\n[b]\nc = 2\n";
    assert_eq!(remove(&table(), edited), "a = 1\n\n# about b\n[b]\nc = 2\n");
}

#[test]
fn somebody_elses_server_is_not_touched() {
    let json = ServerPart::listed(trusted_server);
    for (part, file, line) in [
        (table(), "a = 1\n[mcp_servers.aldis]\ncommand = \"mine\"\nargs = []\n", 2),
        (json, "{\n  \"mcpServers\": {\n    \"aldis\": {\"command\": \"mine\"}\n  }\n}\n", 3),
    ] {
        let refused = part.add("aldis", Some(file.as_bytes())).unwrap_err();
        assert_eq!(refused.line, line, "{refused}");
        assert!(refused.message.contains("another MCP server is named `aldis`"), "{refused}");
        assert_eq!(remove(&part, file), file);
        assert_eq!(part.program(file.as_bytes()).unwrap(), None);
    }
}

#[test]
fn what_cannot_be_extended_is_refused() {
    for (part, file, what) in [
        (table(), "mcp_servers = { other = { command = \"x\" } }\n", "inline"),
        (table(), "a = \n", "not valid TOML"),
        (
            ServerPart::listed(trusted_server),
            "{\"mcpServers\": []}",
            "`mcpServers` is not an object",
        ),
        (
            ServerPart::Item { path: &["permissions", "allow"], item: "mcp__aldis" },
            "{\"permissions\": {\"allow\": {}}}",
            "`allow` is not an array",
        ),
    ] {
        let refused = part.add("aldis", Some(file.as_bytes())).unwrap_err();
        assert!(refused.message.contains(what), "{refused}");
    }
}

#[test]
fn members_and_items_come_and_go() {
    let parts = [
        ServerPart::listed(project_server),
        ServerPart::Member {
            path: ["projects", "/home/dev/a.b", "mcpServers"].map(str::to_owned).to_vec(),
            entry: project_server,
        },
        ServerPart::Item { path: &["permissions", "allow"], item: "mcp__aldis" },
        ServerPart::Item { path: &["enabledMcpjsonServers"], item: SERVER },
    ];
    let files = [
        "{\n  \"a\": 1 // mine\n}\n",
        "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls)\"\n    ]\n  },\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
    ];
    for part in &parts {
        for file in files {
            let added = add(part, file);
            assert!(part.program(added.as_bytes()).unwrap().is_some(), "{added}");
            assert_eq!(add(part, &added), added);
            let left = remove(part, &added);
            let value = |text: &str| edit::read_json(text.as_bytes()).unwrap();
            assert_eq!(value(&left), value(file), "{part:?}: {left}");
            assert_eq!(left.contains("// mine"), file.contains("// mine"), "{left}");
        }
    }
}

proptest! {
    /// Whatever else a file says, it says the same afterwards.
    #[test]
    fn the_rest_of_a_table_file_stays(
        values in prop::collection::btree_map("[a-z]{1,8}", "[ -~]{0,20}", 0..4),
        tables in prop::collection::btree_map("[a-z]{1,8}", "[ -~]{0,20}", 0..4),
    ) {
        let mut file = String::new();
        for (name, value) in &values {
            let _ = writeln!(file, "{name} = {}", Value::from(value.as_str()));
        }
        for (name, value) in &tables {
            let _ = writeln!(file, "\n[t.{name}]\nvalue = {}", Value::from(value.as_str()));
        }
        prop_assume!(parse_table(file.as_bytes()).is_ok());
        let added = add(&table(), &file);
        prop_assert!(added.starts_with(&file));
        prop_assert_eq!(remove(&table(), &added), file);
    }
}
