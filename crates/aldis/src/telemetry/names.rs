//! What spans, events and attributes are called: the one table, and the version of the conventions that
//! it follows. Whatever has no name there begins with `aldis.`; docs/telemetry.md shows the same names.

/// The version of the semantic conventions, for collectors that translate between versions.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
/// Who reports.
pub(super) const SCOPE: &str = "aldis";

/// A run or a delivery.
pub(super) const INVOKE_WORKFLOW: &str = "invoke_workflow";
/// An agent at work: an iteration of a run, an agent of a delivery, a phase, a turn.
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
/// A check that ran.
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
/// Something that was decided.
pub(super) const DECISION: &str = "aldis.decision";
/// What a check said.
pub(super) const EVALUATION: &str = "gen_ai.evaluation.result";

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const WORKFLOW_NAME: &str = "gen_ai.workflow.name";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const EVALUATION_NAME: &str = "gen_ai.evaluation.name";
pub(super) const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
pub(super) const EVALUATION_SCORE: &str = "gen_ai.evaluation.score.value";
/// Only where bodies are asked for.
pub(super) const INPUT: &str = "gen_ai.input.messages";
pub(super) const ERROR: &str = "error.type";

pub(super) const RUN: &str = "aldis.run.id";
pub(super) const MACHINE: &str = "aldis.machine";
pub(super) const ENDING: &str = "aldis.ending";
pub(super) const ITERATION: &str = "aldis.iteration";
pub(super) const TASK: &str = "aldis.task";
pub(super) const RULE: &str = "aldis.rule";
pub(super) const EVIDENCE: &str = "aldis.evidence";
pub(super) const REMEDY: &str = "aldis.remedy";
pub(super) const EXIT_CODE: &str = "aldis.exit_code";
pub(super) const TOKENS: &str = "aldis.usage.tokens";
pub(super) const COST: &str = "aldis.usage.cost_usd";
/// Only where bodies are asked for.
pub(super) const SUMMARY: &str = "aldis.summary";
pub(super) const BECAUSE: &str = "aldis.because";
pub(super) const QUOTES: &str = "aldis.evidence.quotes";
pub(super) const OUTPUT: &str = "aldis.check.output";
