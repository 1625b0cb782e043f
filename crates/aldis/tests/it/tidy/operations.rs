//! Files for those who operate a fleet: a reader of YAML understands them, what they name is there, and
//! every command and flag in them is in `--help`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document;
use crate::sandbox::Sandbox;

/// The documents of a file.
fn read(name: &str) -> Vec<Value> {
    let text = document(&format!("packaging/fleet/{name}"));
    let parts = text.split("\n---\n");
    parts
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|it| panic!("{name}: {it}")))
        .collect()
}

/// A command of the image: its subcommand and every flag are known.
#[track_caller]
fn assert_command(words: &Value) {
    let words: Vec<&str> =
        words.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let subcommand: Vec<&str> = match words[..] {
        ["store", which, ..] => vec!["store", which],
        _ => vec![words[0]],
    };
    let help = Sandbox::new().run(&[&subcommand[..], &["--help"]].concat());
    assert_eq!(help.code, 0, "{words:?}: {}", help.text());
    let known: BTreeSet<&str> =
        help.stdout.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(known.contains(flag), "{flag} of {words:?}\n{}", help.stdout);
    }
}

#[test]
fn the_compose_file_is_whole() {
    let file = &read("compose.yaml")[0];
    let services = file["services"].as_object().unwrap();
    let volumes = file["volumes"].as_object().unwrap();
    let mut used = BTreeSet::new();
    for (name, service) in services {
        assert!(service["image"].is_string(), "{name}");
        if service["image"] == "aldis:latest" {
            assert_command(&service["command"]);
        }
        let needs = match &service["depends_on"] {
            Value::Object(needs) => needs.keys().cloned().collect(),
            Value::Array(needs) => {
                needs.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        for need in needs {
            assert!(services.contains_key(&need), "{name} needs {need}");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let volume = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(volumes.contains_key(volume), "{name}: {volume}");
            assert!(used.insert(volume.to_owned()), "{volume} is shared: state belongs to one");
        }
        // Nothing but the proxy is reached from elsewhere.
        assert_eq!(service["ports"].is_array(), name == "proxy", "{name}");
    }
    let aldis = |command: &str| {
        services
            .values()
            .filter(|it| it["command"][0] == command && it["image"] == "aldis:latest")
            .count()
    };
    assert_eq!((aldis("serve"), aldis("worker")), (2, 1));
}

#[test]
fn the_kubernetes_manifest_is_whole() {
    let documents = read("kubernetes.yaml");
    let mut secrets = BTreeSet::new();
    for document in &documents {
        let kind = document["kind"].as_str().unwrap();
        assert!(
            document["apiVersion"].is_string() && document["metadata"]["name"].is_string(),
            "{kind}"
        );
        if kind != "Namespace" {
            assert_eq!(document["metadata"]["namespace"], "aldis", "{kind}");
        }
        if !["Deployment", "StatefulSet"].contains(&kind) {
            continue;
        }
        let spec = &document["spec"];
        assert_eq!(
            spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"],
            "{kind}"
        );
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{kind}");
        let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
        let mut volumes: BTreeSet<&str> =
            claims.map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
        volumes.extend(
            pod["volumes"].as_array().into_iter().flatten().map(|it| it["name"].as_str().unwrap()),
        );
        for container in pod["containers"].as_array().unwrap() {
            assert_command(&container["args"]);
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{kind}");
            assert!(container["resources"]["limits"]["memory"].is_string(), "{kind}");
            for mount in container["volumeMounts"].as_array().unwrap() {
                assert!(volumes.contains(mount["name"].as_str().unwrap()), "{kind}: {mount}");
            }
            for variable in container["env"].as_array().unwrap() {
                let secret = &variable["valueFrom"]["secretKeyRef"];
                assert!(secret["name"].is_string(), "{kind}: {variable} stands in the file");
                secrets.insert(format!("{}/{}", secret["name"], secret["key"]));
            }
            for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
                let get = &container[probe]["httpGet"];
                if kind == "StatefulSet" {
                    assert_eq!(get["path"], path);
                    let host = container["args"].as_array().unwrap().last().unwrap();
                    assert_eq!(
                        get["httpHeaders"][0]["value"], *host,
                        "the server answers to its own name"
                    );
                }
            }
        }
    }
    assert_eq!(secrets.len(), 2, "{secrets:?}");
    // What is exposed leads to the servers.
    let service = documents.iter().find(|it| it["kind"] == "Service").unwrap();
    let servers = documents.iter().find(|it| it["kind"] == "StatefulSet").unwrap();
    assert_eq!(service["spec"]["selector"], servers["spec"]["template"]["metadata"]["labels"]);
}
