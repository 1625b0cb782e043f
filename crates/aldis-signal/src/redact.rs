//! Takes secrets out of text that is kept, shown or sent.
//!
//! Agents print keys: in a dump of the environment, in a failing test, in a diff. Known shapes are
//! replaced before the text goes anywhere else. A shape that is broken up by terminal sequences or
//! invisible characters is found too; one that is encoded is not.

mod suspects;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde_json::Value;

use self::suspects::is_suspect;
use crate::visible::Visible;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Returns the text without secrets of a known shape.
///
/// ```
/// use aldis_signal::redact::redact;
///
/// let text = format!("key: ghp_{}", "x".repeat(36));
/// assert_eq!(redact(&text), "key: [redacted]");
/// assert_eq!(redact("nothing to hide"), "nothing to hide");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    if !is_suspect(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    without_shapes(text, &Visible::of(text))
}

fn without_shapes<'t>(text: &'t str, visible: &Visible<'_>) -> Cow<'t, str> {
    // Without the shapes nothing may pass.
    let Some(shapes) = &*SHAPES else { return Cow::Borrowed(REDACTED) };
    let mut found = shapes.find_iter(visible.text()).map(|secret| visible.place(secret.range()));
    let Some(first) = found.next() else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len());
    let mut end = 0;
    for secret in std::iter::once(first).chain(found) {
        clean.push_str(text.get(end..secret.start).unwrap_or_default());
        clean.push_str(REDACTED);
        end = secret.end;
    }
    clean.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Takes secrets out of every text in a value.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(members) => members.values_mut().for_each(redact_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes secrets out of text that comes line by line.
///
/// Only private keys have more than one line. Whatever looks like the inside of one goes too, up to
/// its end or to the first line that cannot belong to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redactor {
    in_key: bool,
}

impl Redactor {
    /// Returns whole lines without secrets. What is not text stays as it is.
    pub fn lines<'t>(&mut self, lines: &'t [u8]) -> Cow<'t, [u8]> {
        let (mut clean, mut kept, mut start) = (Vec::new(), 0, 0);
        for whole in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = whole.strip_suffix(b"\n").unwrap_or(whole);
            if self.in_key || is_suspect(line) {
                let text = String::from_utf8_lossy(line);
                let safe = self.suspect(&text);
                if safe != text {
                    clean.extend_from_slice(&lines[kept..start]);
                    clean.extend_from_slice(safe.as_bytes());
                    kept = start + line.len();
                }
            }
            start += whole.len();
        }
        if clean.is_empty() {
            return Cow::Borrowed(lines);
        }
        clean.extend_from_slice(&lines[kept..]);
        Cow::Owned(clean)
    }

    /// Returns a line without secrets of a known shape.
    pub fn line<'t>(&mut self, line: &'t str) -> Cow<'t, str> {
        if !self.in_key && !is_suspect(line.as_bytes()) {
            return Cow::Borrowed(line);
        }
        self.suspect(line)
    }

    /// As [`line`](Self::line), for one that may hold a secret.
    fn suspect<'t>(&mut self, line: &'t str) -> Cow<'t, str> {
        let visible = Visible::of(line);
        let is_frame = memmem::find(visible.text().as_bytes(), PRIVATE_KEY.as_bytes()).is_some();
        let in_key = self.in_key;
        if !in_key && !is_frame {
            return without_shapes(line, &visible);
        }
        let (begin, end) = (visible.text().rfind("-----BEGIN "), visible.text().rfind("-----END "));
        let opened = begin > end && is_frame;
        self.in_key = opened || in_key && end.is_none() && may_be_in_key(visible.text());
        if in_key && (self.in_key || end.is_some()) {
            return Cow::Borrowed(REDACTED);
        }
        without_shapes(line, &visible)
    }
}

/// What the frame of a private key says.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Whether a line may stand inside a private key: base64, a header, or nothing.
fn may_be_in_key(line: &str) -> bool {
    let line = line.trim();
    let base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    line.chars().all(base64) || line.split_once(": ").is_some_and(|(name, _)| !name.contains(' '))
}

/// Whatever matches is a secret. All shapes have a literal beginning, which keeps this fast.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        // Model providers.
        r"\bsk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9]{32,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\bhf_[A-Za-z0-9]{30,}",
        // Amazon: the secret goes with its key, or after its name.
        r#"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b(?:[^\nA-Za-z0-9/+]{1,40}(?:aws_secret_access_key[^\nA-Za-z0-9/+]{1,10})?[A-Za-z0-9/+]{40}\b=?)?"#,
        r#"(?i:aws_secret_access_key|aws_session_token)["']?\s*[=:]\s*["']?[A-Za-z0-9/+]{40,}=*"#,
        // Private keys, also when the end is missing.
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
        // Code hosts and registries.
        r"\bgh[oprsu]_[A-Za-z0-9]{36,}",
        r"\bgithub_pat_[A-Za-z0-9_]{22,}",
        r"\bglpat-[A-Za-z0-9_-]{20,}",
        r"\bnpm_[A-Za-z0-9]{36}",
        r"\bpypi-[A-Za-z0-9_-]{50,}",
        // Services.
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
        r"https://discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}",
        r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"\bwhsec_[A-Za-z0-9+/]{24,}=*",
        // Tokens in general.
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r"\b(?i:bearer)\s+[A-Za-z0-9._~+/-]{20,}=*",
        // A password in an address.
        r"://[^/\s:@]+:[^/\s:@]{3,}@",
    ];
    Regex::new(&shapes.join("|")).ok()
});

#[cfg(test)]
mod tests {
    //! Secrets go, everything else stays.

    use super::*;

    /// A secret of each shape. Written in two parts so that nobody takes them for real.
    fn secrets() -> Vec<String> {
        let x = |count: usize| "x".repeat(count);
        vec![
            format!("sk-ant-{}", "api03-".to_owned() + &x(40)),
            format!("sk-proj-{}", x(40)),
            format!("sk-{}", x(48)),
            format!("AIza{}", x(35)),
            format!("hf_{}", x(34)),
            format!("AKIA{}", "Q".repeat(16)),
            format!("aws_secret_access_key = \"{}", x(40)),
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----",
                x(64),
                x(9)
            ),
            format!("ghp_{}", x(36)),
            format!("github_pat_{}", x(82)),
            format!("glpat-{}", x(20)),
            format!("npm_{}", x(36)),
            format!("pypi-{}", x(60)),
            format!("xoxb-{}", x(24)),
            format!("https://hooks.slack.com/services/{}", x(30)),
            format!("https://discord.com/api/webhooks/123/{}", x(30)),
            format!("sk_live_{}", x(24)),
            format!("whsec_{}", x(32)),
            format!("eyJ{}.eyJ{}.{}", x(20), x(20), x(20)),
            format!("Bearer {}", x(40)),
        ]
    }

    #[test]
    fn every_known_shape_goes() {
        for secret in secrets() {
            for (before, after) in [("", ""), ("key=", "\n"), ("a \"", "\", b"), ("(", ")")] {
                let text = format!("{before}{secret}{after}");
                let clean = redact(&text);
                assert_eq!(clean, format!("{before}{REDACTED}{after}"), "{text}");
            }
        }
    }

    #[test]
    fn broken_up_secrets_go_too() {
        for secret in secrets() {
            for at in (1..secret.len()).step_by(3) {
                let Some((one, other)) = secret.split_at_checked(at) else { continue };
                for gap in ["\x1b[0m", "\x1b]0;title\x07", "\u{200b}", "\x08"] {
                    let text = format!("a {one}{gap}{other} b");
                    assert_eq!(redact(&text), format!("a {REDACTED} b"), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "",
            "the task-list-of-the-whole-company-is-long",
            "sk-learn and scikit-learn",
            "git clone https://example.org/a.git",
            "at src/main.rs:10:5",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "AKIA is a prefix",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "bearer of good news",
            "\x1b[31mred\x1b[0m \u{200b}text",
            "user@example.org:path",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn hostile_texts_keep_no_secret() {
        for (text, secret) in [
            (include_str!("../../../testdata/hostile/redact_00_anthropic.txt"), "Zz9Zz9"),
            (include_str!("../../../testdata/hostile/redact_02_aws.txt"), "QQQQ"),
            (include_str!("../../../testdata/hostile/redact_02_aws.txt"), "wwww"),
            (include_str!("../../../testdata/hostile/redact_03_pem.txt"), "MIIB"),
            (include_str!("../../../testdata/hostile/redact_06_split_chunks.txt"), "QQQQ"),
            (include_str!("../../../testdata/hostile/redact_07_ansi_inside.txt"), "QQQQ"),
        ] {
            assert!(text.contains(secret) && !redact(text).contains(secret), "{text}");
        }
    }

    #[test]
    fn keys_go_line_by_line_too() {
        let key = "before\n-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB/+==\n\
            MIIC\n-----END EC PRIVATE KEY-----\nafter MIID\n";
        let mut redactor = Redactor::default();
        let lines: Vec<_> = key.lines().map(|line| redactor.line(line)).collect();
        let gone = [REDACTED; 6];
        assert_eq!(lines, [&["before"][..], &gone, &["after MIID"]].concat());
        // Talking about a key hides nothing else.
        let talk =
            ["the line -----BEGIN PRIVATE KEY----- comes first", "then comes the rest", "MIIB"];
        let mut redactor = Redactor::default();
        let lines: Vec<_> = talk.iter().map(|line| redactor.line(line)).collect();
        assert_eq!(lines, ["the line [redacted]", talk[1], talk[2]]);
    }

    #[test]
    fn letters_of_any_case_are_marks() {
        for word in ["bearer", "BEARER", "bEaReR", "Bearer"] {
            let text = format!("{word} {}", "x".repeat(40));
            assert_eq!(redact(&text), REDACTED, "{text}");
        }
        let text = format!("AWS_Session_TOKEN={}", "x".repeat(40));
        assert_eq!(redact(&text), REDACTED);
    }

    proptest::proptest! {
        /// Many lines at once are what each is by itself.
        #[test]
        fn lines_are_cleaned_as_one_by_one(parts in proptest::collection::vec(0..24_usize, 0..30)) {
            let pieces = [
                "\n", "\n", "plain", " ", "task-list", "https://a.example/b", "\u{200b}", "\x1b[1m",
                "-----BEGIN EC PRIVATE KEY-----", "MIIB", "-----END EC PRIVATE KEY-----",
            ];
            let secrets = secrets();
            let piece = |index: &usize| match pieces.get(*index) {
                Some(piece) => (*piece).to_owned(),
                None => secrets[index % secrets.len()].clone(),
            };
            let text: String = parts.iter().map(piece).collect();
            let mut one = Redactor::default();
            let one_by_one = text.split_inclusive('\n').map(|line| {
                let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
                format!("{}{end}", one.line(line))
            });
            let one_by_one: String = one_by_one.collect();
            let clean = Redactor::default().lines(text.as_bytes()).into_owned();
            assert_eq!(String::from_utf8(clean).unwrap(), one_by_one);
        }

        /// Where nothing is suspect, there is nothing to find.
        #[test]
        fn looking_for_marks_first_misses_no_shape(
            parts in proptest::collection::vec((0..26_usize, 0..80_usize, "[ -~]{0,3}"), 0..8),
        ) {
            let mut secrets = secrets();
            let x = "x".repeat(40);
            let more = ["gho_", "ghr_", "ghs_", "ghu_", "sk_test_", "rk_live_"];
            secrets.extend(more.map(|start| format!("{start}{x}")));
            let piece = |(which, length, between): &(usize, usize, String)| {
                let secret = &secrets[which % secrets.len()];
                format!("{}{between}", &secret[..secret.len().min(*length)])
            };
            let text: String = parts.iter().map(piece).collect();
            assert_eq!(redact(&text), without_shapes(&text, &Visible::of(&text)));
        }

        #[test]
        fn nothing_is_added_or_lost_around_a_secret(before in "[a-z \n]{0,20}", after in "[ \n][a-z \n]{0,20}", which: proptest::sample::Index) {
            let secrets = secrets();
            let secret = which.get(&secrets);
            let text = format!("{before} {secret}{after}");
            assert_eq!(redact(&text), format!("{before} {REDACTED}{after}"));
            assert_eq!(redact(&redact(&text)), redact(&text));
        }

        #[test]
        fn any_text_is_taken(text: String) {
            let clean = redact(&text);
            assert!(clean == text || clean.contains(REDACTED));
        }
    }
}
