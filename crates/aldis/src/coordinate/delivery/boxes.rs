//! The boxes of a plan that are ticked when their tasks are complete.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aldis_machine::delivery::State;
use serde::{Deserialize, Serialize};

use super::{Asked, DeliveryConduct, number};
use crate::coordinate::conduct::Performed;
use crate::coordinate::coordinator::Core;
use crate::coordinate::plan_box::PlanBox;
use crate::coordinate::world::RepositoryRequest;
use crate::view::display;

/// How much of a task's title names a commit.
const TITLE_MAX: usize = 72;

/// The boxes of a plan, by task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlanBoxes {
    pub(crate) file: PathBuf,
    pub(crate) tasks: BTreeMap<String, PlanBox>,
}

impl DeliveryConduct<'_> {
    /// Ticks the box of a complete task, if it has one. Where the work is committed, so is that.
    pub(super) fn tick(&mut self, core: &mut Core<'_, State>, task: &str) -> Performed {
        let plan = self.plan.boxes.as_ref();
        let found = plan.and_then(|boxes| Some((&boxes.file, boxes.tasks.get(task)?)));
        let (Some((file, item)), Some(no)) = (found, number(core.state(), task)) else {
            return Performed::Done;
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("Tick in {name}: {}", title(core.state(), no));
        let tick = RepositoryRequest::Tick {
            plan: file.clone(),
            item: item.clone(),
            commit: core.state().run().config.worktrees.then_some(message),
        };
        self.ask(core, Asked::Tick(task.to_owned()), tick)
    }
}

/// The title of a task on one line; its id where it has none.
pub(super) fn title(state: &State, no: usize) -> String {
    let Some(task) = state.tasks().get(no) else { return String::new() };
    let title = if task.spec.title.is_empty() { &task.spec.id } else { &task.spec.title };
    display::excerpt(title, TITLE_MAX)
}
