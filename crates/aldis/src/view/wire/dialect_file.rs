//! The schema of dialect files, for editors and generators.
//!
//! Loading is the core's business and says more than a schema can; a test holds every built-in
//! dialect against this description, so that the two cannot drift apart unnoticed.

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// How one family of signals is written and what they mean.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DialectFile {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Unique name.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]{0,31}$"))]
    pub name: String,
    /// One line for listings.
    pub about: String,
    /// How it is written.
    pub syntax: SyntaxForm,
    /// What can be said.
    #[schemars(length(min = 1))]
    pub signals: Vec<Signal>,
    /// Instructions for agents.
    #[schemars(default)]
    pub prompt: String,
    /// Where on its line a signal stands. Default: by family.
    pub standing: Option<Standing>,
    /// Whether words before a claim can doubt it, and words after it take it back. Default: true.
    pub verdict_words: Option<bool>,
    /// Whole payloads that are documentation and not said in earnest.
    #[schemars(default)]
    pub placeholders: Vec<String>,
}

/// Where on its line a signal stands.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Standing {
    /// At the start of a line.
    Column,
    /// At the end of the message, with any words before it.
    End,
    /// On a line with nothing beside it that makes it part of a sentence.
    Line,
}

/// The grammar: one of six families.
#[derive(Debug, JsonSchema)]
#[schemars(tag = "family", rename_all = "lowercase")]
pub enum SyntaxForm {
    /// Keyed lines between delimiter lines.
    Block {
        /// The line that opens and closes a block.
        delimiter: String,
        /// The key of the first line, whose value is the signal's name.
        key: String,
        /// The other keys.
        keys: Vec<String>,
        /// Keys whose values are free text for people.
        #[schemars(default)]
        text_keys: Vec<String>,
        /// Whether a bare fence that holds one block and ends the message counts.
        #[schemars(default)]
        fenced_terminal: bool,
        /// Whether `KEY: NAME` as the last line counts without delimiters.
        #[schemars(default)]
        bare_terminal: bool,
        /// What a claim must say beside its name.
        #[schemars(default)]
        claim_needs: BTreeMap<String, String>,
    },
    /// A fenced JSON object. Its legacy forms are left open here.
    Fence {
        /// The info string of the fence.
        info: String,
        /// How a bare line starts that counts without a fence.
        bare: Option<String>,
        /// The name of a signal that does not say its own.
        default_name: String,
        /// The version this dialect describes.
        version: u64,
        /// The members that are known, and what they hold.
        members: BTreeMap<String, MemberForm>,
        /// Other spellings of an upper-case value, by member.
        #[schemars(default)]
        aliases: BTreeMap<String, BTreeMap<String, String>>,
        /// Progress that a value stands for; `*` for all others.
        #[schemars(default)]
        implied_progress: BTreeMap<String, u8>,
        /// Older forms.
        legacy: Option<serde_json::Map<String, serde_json::Value>>,
    },
    /// A name at the start of a line, with a body below.
    Line {
        /// What stands between name and subject. Default: a colon.
        separator: Option<String>,
        /// Whether the lines below belong to the signal.
        #[schemars(default)]
        body: bool,
        /// Lines around a prompt for another agent.
        delegation: Option<Delegation>,
        /// Body fields that take only listed values.
        #[schemars(default)]
        values: BTreeMap<String, Vec<String>>,
    },
    /// Keyed lines between an opening and a closing line of their own.
    Status {
        /// The line before.
        open: String,
        /// The line after.
        close: String,
        /// Keys that take only listed values, in any case.
        #[schemars(default)]
        values: BTreeMap<String, Vec<String>>,
    },
    /// An opening and a closing tag around the words.
    Tag {
        /// The opening tag; for a tag with an attribute only `<name`.
        open: String,
        /// The closing tag.
        close: String,
        /// An attribute of the opening tag that names the subject.
        attribute: Option<String>,
        /// The words between the tags that count.
        text: Option<String>,
        /// A second tag that closes the payload.
        end: Option<String>,
    },
    /// A keyword that ends the message.
    Trailer {
        /// The keyword.
        keyword: String,
        /// Whether case matters. Default: true.
        case_sensitive: Option<bool>,
        /// Whether nothing may follow. Default: true.
        require_at_end: Option<bool>,
        /// Other keywords that mean the same.
        #[schemars(default)]
        alternative_signals: Vec<String>,
    },
}

/// What a member of a JSON object holds.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the file format's own words")]
pub enum MemberForm {
    Boolean,
    Flags,
    Integer,
    Name,
    Percent,
    Text,
    Upper,
    Version,
}

/// The lines around a prompt that is passed on.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Delegation {
    /// The line before it.
    pub start: String,
    /// The line after it.
    pub end: String,
    /// The field that takes it.
    pub field: String,
}

/// One signal of a dialect.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Signal {
    /// Canonical spelling.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_ -]{1,64}$"))]
    pub name: String,
    /// What it says in any dialect.
    pub meaning: Meaning,
    /// Whether it names what it is about. Default: none.
    pub subject: Option<Presence>,
    /// What its subject looks like. Default: id.
    pub subject_form: Option<SubjectForm>,
    /// A body field that names the subject where the signal itself does not.
    pub subject_from: Option<String>,
    /// What is said with it. Default: none.
    pub payload: Option<PayloadForm>,
    /// A member that its words must have if they are a JSON object.
    pub object_needs: Option<String>,
    /// Who may say it; empty for everyone.
    #[schemars(default)]
    pub roles: Vec<String>,
    /// Lower numbers go first. Default: 5.
    pub priority: Option<u8>,
    /// What the delivery loop does with it.
    pub handler: Option<String>,
    /// Members whose absence is a warning.
    #[schemars(default)]
    pub fields: Vec<String>,
    /// Members without which it does not count.
    #[schemars(default)]
    pub require: Vec<String>,
    /// Members that should have this value; another is a warning.
    #[schemars(default)]
    pub expect: BTreeMap<String, String>,
    /// Meanings that depend on what was said; the first that applies wins.
    #[schemars(default)]
    pub when: Vec<WhenForm>,
}

/// What a signal says in any dialect.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the file format's own words")]
pub enum Meaning {
    Approved,
    Blocked,
    Done,
    Failed,
    Handoff,
    Info,
    NeedsHelp,
    NeedsHuman,
    Progress,
    Rejected,
}

/// Whether something must, may or must not be there.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the file format's own words")]
pub enum Presence {
    None,
    Optional,
    Required,
}

/// What a subject looks like.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the file format's own words")]
pub enum SubjectForm {
    Id,
    Path,
    Text,
}

/// What is said with a signal.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the file format's own words")]
pub enum PayloadForm {
    Json,
    None,
    Percent,
    Text,
}

/// A meaning that depends on what was said.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WhenForm {
    /// What must all hold: fields, `subject` or `payload`, and their values.
    #[schemars(rename = "if")]
    pub conditions: BTreeMap<String, String>,
    /// What the signal then says.
    pub meaning: Meaning,
    /// What the delivery loop then does.
    pub handler: Option<String>,
}
