//! Experiments, and what is kept of them.

use std::fmt;

use bt_direct::FactorError;
use bt_formats::CancelToken;
use serde_json::{Map, Value};

/// What an experiment found: plain numbers and words by name.
pub type Facts = Map<String, Value>;

type Run = dyn Fn(&CancelToken) -> Result<Facts, Error>;

/// A finite piece of work with a name.
pub struct Experiment {
    id: String,
    what: String,
    run: Box<Run>,
}

impl Experiment {
    pub(crate) fn new(
        id: impl Into<String>,
        what: impl Into<String>,
        run: impl Fn(&CancelToken) -> Result<Facts, Error> + 'static,
    ) -> Self {
        Self { id: id.into(), what: what.into(), run: Box::new(run) }
    }
    /// The name under which its result is kept: `study/…`.
    pub fn id(&self) -> &str {
        &self.id
    }
    /// What it does, for people who wait.
    pub fn what(&self) -> &str {
        &self.what
    }
    /// Does it. A method that fails is a result that says so.
    ///
    /// # Errors
    /// [`Error::Stopped`] once `cancel` is raised; [`Error::Failed`] when the experiment itself cannot be set up, for want of
    /// memory for example.
    pub fn run(&self, cancel: &CancelToken) -> Result<Facts, Error> {
        let facts = (self.run)(cancel)?;
        if cancel.is_cancelled() { Err(Error::Stopped) } else { Ok(facts) }
    }
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

/// Why an experiment has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was cancelled.
    #[error("stopped")]
    Stopped,
    /// The reason.
    #[error("{0}")]
    Failed(String),
}

impl From<bt_formats::Error> for Error {
    fn from(error: bt_formats::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<FactorError> for Error {
    fn from(error: FactorError) -> Self {
        if matches!(error, FactorError::Stopped) { Self::Stopped } else { Self::Failed(error.to_string()) }
    }
}

impl From<bt_queue::Error> for Error {
    fn from(error: bt_queue::Error) -> Self {
        match error {
            bt_queue::Error::Stopped => Self::Stopped,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Results by the names of their experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results(Facts);

impl Results {
    /// Those of an earlier run, as [`Results::to_json`] gave them. What is not an object is left out.
    pub fn from_json(value: &Value) -> Self {
        let objects = value.as_object().into_iter().flatten().filter(|(_, facts)| facts.is_object());
        Self(objects.map(|(id, facts)| (id.clone(), facts.clone())).collect())
    }
    /// As an object of objects.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }
    /// Whether an experiment has a result.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }
    /// Keeps a result.
    pub fn insert(&mut self, id: &str, facts: Facts) {
        self.0.insert(id.into(), Value::Object(facts));
    }
    /// All of them, with the names of their experiments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Facts)> {
        self.0.iter().filter_map(|(id, facts)| Some((id.as_str(), facts.as_object()?)))
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// A value by the name of its experiment and a JSON pointer into its facts, such as `/cg/iterations`.
    pub fn at(&self, id: &str, pointer: &str) -> Option<&Value> {
        self.0.get(id)?.pointer(pointer)
    }
    /// The same as a number.
    pub fn number(&self, id: &str, pointer: &str) -> Option<f64> {
        self.at(id, pointer)?.as_f64()
    }
    /// The same as a word.
    pub fn text(&self, id: &str, pointer: &str) -> Option<&str> {
        self.at(id, pointer)?.as_str()
    }
}
