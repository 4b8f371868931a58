//! The report of a node about its task to another node.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::{CallTask, TaskPlace, TaskQuestions, TaskSnapshot, TaskStage};
use crate::codes::FailureCode;

/// The stage number of a task whose node is gone.
pub const LOST: u64 = u64::MAX;

/// The state of a task, as its node sends it to another node.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskReport {
    pub contract: String,
    pub tool: String,
    stage: ReportedStage,
    created_ms: i64,
    updated_ms: i64,
    message: Option<String>,
    entered: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum ReportedStage {
    Working,
    InputRequired(Map<String, Value>),
    Completed(Box<RawValue>),
    Failed(Box<RawValue>),
    Cancelled,
}

impl TaskReport {
    /// Reports the current state of a task. The other node decides whether its caller may see it.
    pub fn new(task: &CallTask) -> Self {
        let [contract, tool] = task.named().map(str::to_owned);
        let seen = task.seen();
        let stage = match seen.stage {
            TaskStage::Open | TaskStage::AnsweredAtOnce | TaskStage::Working => {
                ReportedStage::Working
            }
            TaskStage::InputRequired(questions) => ReportedStage::InputRequired(questions.open),
            TaskStage::Completed(answer) => ReportedStage::Completed(raw(&answer)),
            TaskStage::Failed(error) => ReportedStage::Failed(raw(&error)),
            TaskStage::Cancelled => ReportedStage::Cancelled,
        };
        Self {
            contract,
            tool,
            stage,
            created_ms: seen.created.as_millisecond(),
            updated_ms: seen.updated.as_millisecond(),
            message: seen.message,
            entered: seen.entered,
        }
    }

    /// Turns the report into the state of a task. A time that does not exist becomes the Unix epoch.
    pub fn into_seen(self) -> TaskSnapshot {
        let time = |ms| Timestamp::from_millisecond(ms).unwrap_or_default();
        let stage = match self.stage {
            ReportedStage::Working => TaskStage::Working,
            ReportedStage::InputRequired(open) => TaskStage::InputRequired(TaskQuestions {
                open,
                answers: Map::new(),
            }),
            ReportedStage::Completed(answer) => TaskStage::Completed(answer.get().into()),
            ReportedStage::Failed(error) => TaskStage::Failed(error.get().into()),
            ReportedStage::Cancelled => TaskStage::Cancelled,
        };
        TaskSnapshot {
            stage,
            created: time(self.created_ms),
            updated: time(self.updated_ms),
            message: self.message,
            entered: self.entered,
        }
    }
}

/// Returns an answer as raw JSON: as a JSON string it would be twice as long.
fn raw(answer: &str) -> Box<RawValue> {
    RawValue::from_string(answer.to_owned()).expect("an answer is JSON")
}

impl TaskSnapshot {
    /// Reports a task whose node is gone: the call ended with the node, and its effect is unknown.
    pub fn lost(place: &TaskPlace) -> Self {
        let message = "the node that ran the call is gone: whether the call ended, and what it wrote, is not known; look \
                       before you call again";
        let data =
            serde_json::json!({ "code": FailureCode::Unavailable.label(), "outcome": "unknown" });
        let error = serde_json::json!({ "code": -32603, "message": message, "data": data });
        Self {
            stage: TaskStage::Failed(Arc::from(error.to_string())),
            created: place.created,
            updated: place.created,
            message: None,
            entered: LOST,
        }
    }
}
