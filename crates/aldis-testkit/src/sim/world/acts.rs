//! What agents, humans and outsiders do.

use std::rc::Rc;

use aldis::engine::driver::Origin;
use aldis_machine::phases::{
    AfterTransition, Config, Event, Hold, Pipeline, Said, Start, State, Stop, TokenPolicy,
};
use aldis_signal::Dialect;

use super::super::agent::{Speaker, speak};
use super::super::engine::Delivery;
use super::super::oracle::{Broken, Check, hold};
use super::delivery::Reply;
use super::{Late, World};

/// The signals of the small pipeline; caw knows them all.
const SMALL: &[(&str, &str, Option<&str>)] = &[
    ("plan", "PLANNING_COMPLETE", None),
    ("build", "EXECUTION_COMPLETE", None),
    ("test", "QA_COMPLETE", Some("skip_test")),
    ("ship", "REVIEW_COMPLETE", None),
];

impl World {
    /// Something happens.
    pub(super) fn act(&mut self) -> Check {
        let project = self.rng.below(self.files.len());
        match self.rng.below(1000) {
            0..5 => self.cancel(project),
            5..17 => self.resume(project),
            17..80 => self.start(project),
            80..84 => {
                self.files[project].meddle(&mut self.rng);
                Ok(())
            }
            84..87 => {
                self.plant_file(project);
                Ok(())
            }
            87..97 => self.arrive_late(),
            _ => {
                let session = self.rng.below(self.sessions.len());
                self.live_on(session)
            }
        }
    }

    /// A session does what sessions do.
    fn live_on(&mut self, session: usize) -> Check {
        let id = Some(self.sessions[session].id.to_string());
        if self.sessions[session].turn.is_none() {
            let event = match self.rng.below(20) {
                0 => Event::SessionEnd { session: id },
                1 => Event::SessionStart { session: id },
                _ => {
                    let turn = self.sessions[session].begin(self.now);
                    Event::Prompt { session: id, turn, own: false }
                }
            };
            return self.send(session, event, None).map(drop);
        }
        match self.rng.below(100) {
            0..10 => self.subagent(session),
            10..13 => {
                let said = self.speech(session, None);
                let closing_words = "Done.".to_owned();
                let event = Event::Responded { session: id, said, closing_words };
                self.send(session, event, None)?;
                self.stop(session, true)
            }
            13 => self.turn_breaks(session, Event::Interrupted { session: id }),
            14 => {
                let error = "rate_limit".to_owned();
                self.turn_breaks(session, Event::StopFailed { session: id, error })
            }
            15 => self.send(session, Event::SessionStart { session: id }, None).map(drop),
            16 => self
                .send(session, Event::Prompt { session: id, turn: None, own: true }, None)
                .map(drop),
            _ => self.stop(session, false),
        }
    }

    fn turn_breaks(&mut self, session: usize, event: Event) -> Check {
        self.send(session, event, None)?;
        self.sessions[session].end();
        Ok(())
    }

    /// What an agent says, knowing what it was told.
    fn speech(&mut self, session: usize, agent: Option<&str>) -> Vec<Said> {
        let of = &self.sessions[session];
        let Some(held) = self.engine.live(of.project, Some(&of.id)) else { return Vec::new() };
        let speaker = Speaker { state: &held.state, now: self.now, agent, timed: of.timed };
        speak(&mut self.rng, speaker)
    }

    fn subagent(&mut self, session: usize) -> Check {
        // Names come again: a sub-agent is heard when it stops and in the main transcript.
        let agent = format!("a{}", self.rng.below(12));
        let said = self.speech(session, Some(&agent));
        let spoken: String = said.iter().map(|said| format!("{said:?}")).collect();
        let digest = aldis_machine::phases::digest(&spoken);
        let source = format!("subagent/{agent}/{digest}");
        let fresh_token = Some(self.code());
        let id = Some(self.sessions[session].id.to_string());
        let event = Event::SubagentStop { session: id, agent: Some(agent), said, fresh_token };
        self.send(session, event, Some(Rc::from(source))).map(drop)
    }

    fn stop(&mut self, session: usize, responded: bool) -> Check {
        let mut said = if responded { Vec::new() } else { self.speech(session, None) };
        if self.rng.chance(5) {
            let agent = format!("a{}", self.rng.below(12));
            said.extend(self.speech(session, Some(&agent)));
        }
        let hold = match self.rng.below(60) {
            0 => Some(Hold::Aborted),
            1 => Some(Hold::Background { what: "cargo test".to_owned() }),
            2 => Some(Hold::Failed { what: "context_full".to_owned() }),
            3 => Some(Hold::Question),
            _ => None,
        };
        let tools_ran = self.rng.chance(30);
        let leaked = self.rng.chance(3);
        let fresh_token = Some(self.code());
        let of = &self.sessions[session];
        let Some(turn) = &of.turn else { return Ok(()) };
        let stop = Stop {
            session: Some(of.id.to_string()),
            host: "sim".to_owned(),
            turn: of.names_turns.then(|| turn.name.clone()),
            turn_began: of.tells_began.then_some(turn.began),
            continued: of.tells_continued.then_some(turn.continued),
            said,
            closing_words: if responded { String::new() } else { "Working on it.".to_owned() },
            tools_ran,
            cap: of.cap,
            hold,
            heard_to: None,
            fresh_token,
            token_leaked: leaked,
        };
        let reply = self.send(session, Event::Stop(stop), None)?;
        self.answered(session, reply, tools_ran)
    }

    /// The host acts on the answer to a stop.
    pub(super) fn answered(&mut self, session: usize, reply: Reply, tools_ran: bool) -> Check {
        match reply {
            Reply::Block { advanced } => {
                let counted = self.sessions[session].refused(tools_ran, advanced);
                counted.or_else(|count| {
                    hold(false, "refusals_within_cap", || {
                        let Some(limit) = self.sessions[session].cap.limit else {
                            return format!("{count} in a row, and the host has no limit");
                        };
                        format!("{count} in a row, and the host gives up after {limit}")
                    })
                })
            }
            Reply::Allow | Reply::Context | Reply::Silence => {
                self.sessions[session].end();
                Ok(())
            }
        }
    }

    /// Sends an event on its way: it may get lost for a while, or arrive twice.
    fn send(
        &mut self,
        session: usize,
        event: Event,
        source: Option<Rc<str>>,
    ) -> Result<Reply, Broken> {
        let delivery = Delivery { event: Rc::new(event), source };
        if self.strikes(15) {
            self.limbo.push(Late { session, delivery });
            return Ok(Reply::Silence);
        }
        let reply = self.deliver(session, &delivery)?;
        if self.strikes(25) {
            // Two hooks are registered, each with a code of its own: the host heeds the first.
            let mut again = delivery;
            if let Event::Stop(stop) = &*again.event {
                let fresh_token = Some(self.code());
                again.event = Rc::new(Event::Stop(Stop { fresh_token, ..stop.clone() }));
            }
            self.deliver(session, &again)?;
        }
        Ok(reply)
    }

    /// An event arrives that was sent long ago, perhaps in another turn.
    fn arrive_late(&mut self) -> Check {
        if self.limbo.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.limbo.len());
        let Late { session, delivery } = self.limbo.swap_remove(at);
        self.disturb(self.sessions[session].project);
        self.deliver(session, &delivery).map(drop)
    }

    fn cancel(&mut self, project: usize) -> Check {
        let Some(held) = self.engine.live(project, None) else { return Ok(()) };
        self.command(project, held, Event::Cancel { by: "`aldis auto stop`".to_owned() })
    }

    fn resume(&mut self, project: usize) -> Check {
        let live = self.engine.live(project, None).filter(|_| self.rng.chance(20));
        let Some(held) = live.or_else(|| self.engine.latest(project)) else { return Ok(()) };
        // As the command does; the machine would refuse as well.
        if held.state.can_resume().is_err() && self.rng.chance(80) {
            return Ok(());
        }
        if self.engine.live(project, None).is_some_and(|live| live.run != held.run) {
            return Ok(());
        }
        self.disturb(project);
        let fresh_token = Some(self.code());
        self.command(project, held, Event::Resume { fresh_token })
    }

    fn start(&mut self, project: usize) -> Check {
        if let Some(live) = self.engine.live(project, None) {
            if self.rng.chance(97) {
                return Ok(());
            }
            let by = "`aldis auto start --replace`".to_owned();
            self.command(project, live, Event::Cancel { by })?;
            if self.engine.live(project, None).is_some() {
                return Ok(());
            }
        }
        self.tally.events += 1;
        self.disturb(project);
        let start = self.beginning(project);
        let origin = Rc::new(Origin::Start(Box::new(start)));
        if let Some(taken) = self.create(project, &origin, None)? {
            self.perform(project, &taken, true)?;
        }
        Ok(())
    }

    /// What somebody asks for.
    fn beginning(&mut self, project: usize) -> Start {
        let pipeline = match self.rng.below(10) {
            0..4 => Pipeline::caw(),
            4 => match Dialect::builtin("chorus") {
                Some(chorus) => small().spoken_in(chorus),
                None => small(),
            },
            _ => small(),
        };
        let flags: Vec<String> = pipeline.flags().into_iter().map(str::to_owned).collect();
        let skip = flags.into_iter().filter(|_| self.rng.chance(20)).collect();
        let token = self.rng.pick(&[
            TokenPolicy::Off,
            TokenPolicy::Off,
            TokenPolicy::Accept,
            TokenPolicy::Require,
        ]);
        let config = Config {
            skip,
            verbose: self.rng.chance(20),
            no_questions: self.rng.chance(20),
            parallel_validation: self.rng.chance(20),
            after_transition: if self.rng.chance(15) {
                AfterTransition::Stop
            } else {
                AfterTransition::Continue
            },
            token,
            ..Config::default()
        };
        let of_project: Vec<Rc<str>> = self
            .sessions
            .iter()
            .filter(|session| session.project == project)
            .map(|session| Rc::clone(&session.id))
            .collect();
        let bound = self.rng.below(of_project.len() * 3);
        let code = (token != TokenPolicy::Off).then(|| self.code());
        Start {
            task: "Add CSV export".to_owned(),
            phase: pipeline.first(&config.skip).to_owned(),
            max_iterations: self.rng.pick(&[1, 2, 3, 5, 20, 50]),
            session: of_project.get(bound).map(|id| id.to_string()),
            token: code,
            pipeline,
            config,
        }
    }

    /// Another tool leaves a file that tells of a run.
    fn plant_file(&mut self, project: usize) {
        if self.engine.live(project, None).is_none() {
            let session = self.rng.below(self.sessions.len() * 2);
            let session = self.sessions.get(session).map(|session| Rc::clone(&session.id));
            self.files[project].found(&mut self.rng, self.now, session.as_deref());
        }
    }
}

/// Four phases, one of which can be left out.
fn small() -> Pipeline {
    let mut pipeline = Pipeline::caw();
    "small".clone_into(&mut pipeline.name);
    pipeline.phases.truncate(SMALL.len());
    for (phase, (name, signal, skip)) in pipeline.phases.iter_mut().zip(SMALL) {
        (*name).clone_into(&mut phase.name);
        phase.signal = Some((*signal).to_owned());
        phase.skip = skip.map(str::to_owned);
    }
    pipeline
}

/// Whether a run is in a phase its pipeline does not have.
pub(super) fn is_astray(state: &State) -> bool {
    state.pipeline.phase(&state.phase).is_none()
}
