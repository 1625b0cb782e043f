//! An issuer on loopback with keys of its own, and tokens that are nearly right.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use aldis_store::MemoryStore;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::*;
use crate::settings::clock;

const AUDIENCE: &str = "https://aldis.example.org";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs.
enum Key {
    Ec(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl Key {
    fn ec() -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let der = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(Box::new(EcdsaKeyPair::from_pkcs8(kind, der.as_ref(), &random).unwrap()))
    }

    /// `ring` generates none; without the program there is none.
    fn rsa() -> Option<Self> {
        let mut make = Command::new("openssl");
        make.args(["genpkey", "-algorithm", "RSA", "-outform", "DER"]);
        let made = make.args(["-pkeyopt", "rsa_keygen_bits:2048"]).output().ok()?;
        assert!(made.status.success(), "{made:?}");
        // Versions of the program differ in what they wrap the key in.
        let der = &made.stdout;
        let key = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
        Some(Self::Rsa(Box::new(key.unwrap())))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ec(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    fn jwk(&self, name: &str) -> Value {
        match self {
            Self::Ec(key) => {
                let point = key.public_key().as_ref();
                json!({ "kty": "EC", "crv": "P-256", "kid": name, "use": "sig", "alg": "ES256",
                        "x": base64(&point[1..33]), "y": base64(&point[33..65]) })
            }
            Self::Rsa(key) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
                let [n, e] = [public.n, public.e].map(base64);
                json!({ "kty": "RSA", "kid": name, "use": "sig", "alg": "RS256", "n": n, "e": e })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    fn token(&self, name: &str, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "typ": "JWT", "kid": name });
        let message = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = base64(self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

/// An issuer on loopback, until the process ends.
struct Platform {
    issuer: String,
    documents: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<AtomicUsize>,
}

impl Platform {
    fn start(keys: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let discovery = json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys") });
        let documents = HashMap::from([
            ("/.well-known/openid-configuration".to_owned(), discovery.to_string()),
            ("/keys".to_owned(), json!({ "keys": keys }).to_string()),
        ]);
        let platform =
            Self { issuer, documents: Arc::new(Mutex::new(documents)), asked: Arc::default() };
        let (documents, asked) = (platform.documents.clone(), platform.asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                while !lines.next().unwrap().unwrap().is_empty() {}
                let path = first.split(' ').nth(1).unwrap().to_owned();
                asked.fetch_add(1, Ordering::SeqCst);
                let body = documents.lock().unwrap().get(&path).cloned().unwrap_or_default();
                let length = body.len();
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
                write!(stream, "{head} {length}\r\n\r\n{body}").unwrap();
            }
        });
        platform
    }

    fn issuers(&self, more: &str) -> Issuers {
        let text = format!("issuer = \"{}\"\naudience = \"{AUDIENCE}\"\n{more}", self.issuer);
        Issuers::new(vec![toml::from_str(&text).unwrap()], Path::new("/")).unwrap()
    }
}

const GRANTS: &str = r#"
lifetime = "30m"
[[grants]]
scope = "work"
project = "/srv/shop"
claims = { repository = "acme/shop", ref = "refs/heads/*" }
[[grants]]
scope = "observe"
all_projects = true
claims = { sub = "system:serviceaccount:ci:reader" }
"#;

/// What a job of the right repository says.
fn job(issuer: &str, now: Timestamp, id: &str) -> Value {
    let seconds = now.as_millis() / 1_000;
    json!({ "iss": issuer, "aud": AUDIENCE, "sub": "repo:acme/shop:ref:refs/heads/main",
            "repository": "acme/shop", "ref": "refs/heads/main", "jti": id,
            "iat": seconds, "nbf": seconds, "exp": seconds + 300 })
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

fn without(claims: &Value, name: &str) -> Value {
    let mut claims = claims.clone();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

#[test]
fn a_job_gets_what_its_claims_allow() {
    let now = clock::wall();
    for key in [Some(Key::ec()), Key::rsa()].into_iter().flatten() {
        let platform = Platform::start(&[key.jwk("k1")]);
        let (issuers, store) = (platform.issuers(GRANTS), MemoryStore::new());
        let claims = job(&platform.issuer, now, "1");
        let (secret, token) = issuers.exchange(&store, &key.token("k1", &claims), now).unwrap();
        let found = tokens::find(&store, &secret, now).unwrap().unwrap();
        assert_eq!(found.grant, token.grant);
        assert_eq!(
            (found.grant.scope, found.grant.project.as_deref()),
            (Scope::Work, Some("/srv/shop"))
        );
        assert_eq!(found.expires, now.after(Duration::from_secs(30 * 60)));
        // A pod, whose platform gives ids to nobody, and names several audiences.
        let pod = without(&job(&platform.issuer, now, ""), "jti");
        let pod = with(&pod, "sub", json!("system:serviceaccount:ci:reader"));
        let pod = with(&without(&pod, "repository"), "aud", json!(["other", AUDIENCE]));
        let pod = key.token("k1", &pod);
        let (_, token) = issuers.exchange(&store, &pod, now).unwrap();
        assert_eq!((token.grant.scope, token.grant.is_everywhere()), (Scope::Observe, true));
        // Each is taken once, by whichever server of the store.
        let other = platform.issuers(GRANTS);
        for (issuers, token) in [
            (&issuers, key.token("k1", &claims)),
            (&other, key.token("k1", &claims)),
            (&other, pod),
        ] {
            let error = issuers.exchange(&store, &token, now).unwrap_err().to_string();
            assert!(error.contains("was used before"), "{error}");
        }
        // Keys are fetched once: the discovery and the keys, for each server.
        assert_eq!(platform.asked.load(Ordering::SeqCst), 4);
    }
}

#[test]
fn what_is_nearly_right_is_refused() {
    let now = clock::wall();
    let (key, other) = (Key::ec(), Key::ec());
    let platform = Platform::start(&[key.jwk("k1")]);
    let (issuers, store) = (platform.issuers(GRANTS), MemoryStore::new());
    let claims = job(&platform.issuer, now, "1");
    let seconds = now.as_millis() / 1_000;
    let good = key.token("k1", &claims);
    let parts: Vec<&str> = good.split('.').collect();
    let header = |algorithm: &str| base64(json!({ "alg": algorithm, "kid": "k1" }).to_string());
    // The public key as if it were a shared secret.
    let confused = {
        use hmac::{Hmac, KeyInit as _, Mac as _};
        let message = format!("{}.{}", header("HS256"), parts[1]);
        let public = key.jwk("k1").to_string();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(public.as_bytes()).unwrap();
        mac.update(message.as_bytes());
        format!("{message}.{}", base64(mac.finalize().into_bytes()))
    };
    let changed = base64(with(&claims, "repository", json!("acme/other")).to_string());
    let signed = |claims: &Value| key.token("k1", claims);
    let cases = [
        (
            "another issuer",
            signed(&with(&claims, "iss", json!("https://evil.example"))),
            "not believed",
        ),
        ("no issuer", signed(&without(&claims, "iss")), "not believed"),
        (
            "another audience",
            signed(&with(&claims, "aud", json!("https://other.example"))),
            "Audience",
        ),
        ("no audience", signed(&without(&claims, "aud")), "aud"),
        ("another key", other.token("k1", &claims), "Signature"),
        ("an unknown key", other.token("k2", &claims), "no such key"),
        ("expired", signed(&with(&claims, "exp", json!(seconds - 120))), "Expired"),
        ("without an end", signed(&without(&claims, "exp")), "exp"),
        ("an end that is no time", signed(&with(&claims, "exp", json!("never"))), ""),
        ("not valid yet", signed(&with(&claims, "nbf", json!(seconds + 600))), "Immature"),
        ("none", format!("{}.{}.", header("none"), parts[1]), "no signed"),
        ("HS256 with the public key", confused, "not taken"),
        ("RS256 with a key of ES256", format!("{}.{}.{}", header("RS256"), parts[1], parts[2]), ""),
        ("changed claims", format!("{}.{changed}.{}", parts[0], parts[2]), "Signature"),
        ("no signature", format!("{}.{}.", parts[0], parts[1]), "Signature"),
        ("two parts", format!("{}.{}", parts[0], parts[1]), "no signed"),
        (
            "another repository",
            signed(&with(&claims, "repository", json!("acme/shop2"))),
            "no grant",
        ),
        ("a tag", signed(&with(&claims, "ref", json!("refs/tags/v1"))), "no grant"),
        (
            "a list for a claim",
            signed(&with(&claims, "repository", json!(["acme/shop"]))),
            "no grant",
        ),
        ("too long", signed(&with(&claims, "more", json!("x".repeat(TOKEN_MAX)))), "no signed"),
        ("nothing", String::new(), "no signed"),
    ];
    for (name, token, said) in cases {
        let error = issuers.exchange(&store, &token, now).map(drop).unwrap_err();
        let words = error.to_string();
        assert!(error.is_unauthorized() && words.contains(said), "{name}: {words}");
    }
    assert!(tokens::list(&store).unwrap().is_empty());
    // What was refused was not used up.
    issuers.exchange(&store, &good, now).unwrap();
}

#[test]
fn keys_are_fetched_again_when_they_change_but_not_for_every_token() {
    let now = clock::wall();
    let (first, second) = (Key::ec(), Key::ec());
    let platform = Platform::start(&[first.jwk("k1")]);
    let (issuers, store) = (platform.issuers(GRANTS), MemoryStore::new());
    let at = |seconds: u64| now.after(Duration::from_secs(seconds));
    let asked = || platform.asked.load(Ordering::SeqCst);
    let take = |key: &Key, name: &str, id: &str, at: Timestamp| {
        issuers.exchange(&store, &key.token(name, &job(&platform.issuer, now, id)), at).is_ok()
    };
    assert!(take(&first, "k1", "1", at(0)));
    assert_eq!(asked(), 2);
    let keys = json!({ "keys": [first.jwk("k1"), second.jwk("k2")] });
    platform.documents.lock().unwrap().insert("/keys".to_owned(), keys.to_string());
    // Somebody who makes names up makes nobody fetch.
    assert!(!take(&second, "k2", "2", at(1)) && !take(&second, "k3", "3", at(2)));
    assert_eq!(asked(), 2);
    assert!(take(&second, "k2", "4", at(31)));
    assert_eq!(asked(), 4);
    assert!(take(&first, "k1", "5", at(32)));
    assert_eq!(asked(), 4);
}

#[test]
fn a_cluster_brings_its_keys_in_a_file() {
    let now = clock::wall();
    let (key, directory) = (Key::ec(), tempfile::tempdir().unwrap());
    let keys = json!({ "keys": [key.jwk("k1")] });
    std::fs::write(directory.path().join("keys.json"), keys.to_string()).unwrap();
    let issuer = "https://kubernetes.default.svc.cluster.local";
    let text = format!(
        "issuer = \"{issuer}\"\naudience = \"{AUDIENCE}\"\njwks_file = \"keys.json\"\n{GRANTS}"
    );
    let config = toml::from_str(&text).unwrap();
    let (issuers, store) =
        (Issuers::new(vec![config], directory.path()).unwrap(), MemoryStore::new());
    let token = key.token("k1", &job(issuer, now, "1"));
    issuers.exchange(&store, &token, now).unwrap();
}

#[test]
fn what_would_let_in_everybody_is_refused() {
    let issuer = "issuer = \"https://token.example\"\n";
    for (text, said) in [
        ("audience = \"\"\n", "needs an audience"),
        (
            "audience = \"a\"\n[[grants]]\nscope = \"work\"\nproject = \"/p\"\nclaims = {}\n",
            "everybody",
        ),
        (
            "audience = \"a\"\n[[grants]]\nscope = \"work\"\nproject = \"/p\"\nclaims = { sub = \"*\" }\n",
            "everybody",
        ),
        (
            "audience = \"a\"\n[[grants]]\nscope = \"work\"\nclaims = { sub = \"x\" }\n",
            "needs a project",
        ),
        (
            "audience = \"a\"\n[[grants]]\nscope = \"signal\"\nproject = \"/p\"\nclaims = { sub = \"x\" }\n",
            "needs an agent",
        ),
    ] {
        let config: IssuerConfig = toml::from_str(&format!("{issuer}{text}")).unwrap();
        let error = Issuers::new(vec![config], Path::new("/")).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    let plain: IssuerConfig =
        toml::from_str("issuer = \"ftp://token.example\"\naudience = \"a\"\n").unwrap();
    assert!(Issuers::new(vec![plain], Path::new("/")).is_err());
}
