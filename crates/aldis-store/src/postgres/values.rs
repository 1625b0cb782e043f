//! Parameters of a statement and columns of a row.

use aldis_signal::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::text;
use crate::step::{Driver, Revision, RunId};

/// A parameter, with its type: statements are sent with their types, so that they need no
/// preparation, which a pooler between us and the database may not support.
type Value = (Box<dyn ToSql + Sync + Send>, Type);

/// The parameters of a statement, in order.
#[derive(Debug, Default)]
pub(super) struct Values(Vec<Value>);

impl Values {
    /// The parameters as they are sent.
    pub(super) fn given(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.0.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }

    fn push(mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> Self {
        self.0.push((Box::new(value), kind));
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.push(text::encode(text).into_owned(), Type::TEXT)
    }

    pub(super) fn maybe_text(self, text: Option<&str>) -> Self {
        self.push(text.map(|text| text::encode(text).into_owned()), Type::TEXT)
    }

    pub(super) fn texts<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let encoded = texts.into_iter().map(|text| text::encode(text).into_owned());
        self.push(encoded.collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    pub(super) fn maybe_texts<'t>(self, texts: impl IntoIterator<Item = Option<&'t str>>) -> Self {
        let encode = |text: Option<&str>| text.map(|text| text::encode(text).into_owned());
        self.push(texts.into_iter().map(encode).collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    /// Texts, or all texts when there are none.
    pub(super) fn texts_or_any(self, texts: &[String]) -> Self {
        let encoded = texts.iter().map(|text| text::encode(text).into_owned());
        let encoded = (!texts.is_empty()).then(|| encoded.collect::<Vec<_>>());
        self.push(encoded, Type::TEXT_ARRAY)
    }

    /// Texts that are encoded already.
    pub(super) fn raw_texts(self, texts: Vec<String>) -> Self {
        self.push(texts, Type::TEXT_ARRAY)
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.push(clamp(number), Type::INT8)
    }

    pub(super) fn maybe_number(self, number: Option<u64>) -> Self {
        self.push(number.map(clamp), Type::INT8)
    }

    pub(super) fn numbers(self, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.push(numbers.into_iter().map(clamp).collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn maybe_numbers(self, numbers: impl IntoIterator<Item = Option<u64>>) -> Self {
        let clamped = numbers.into_iter().map(|number| number.map(clamp));
        self.push(clamped.collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn signed(self, number: i64) -> Self {
        self.push(number, Type::INT8)
    }

    pub(super) fn maybe_signed(self, number: Option<i64>) -> Self {
        self.push(number, Type::INT8)
    }

    pub(super) fn limit(self, limit: usize) -> Self {
        self.number(limit as u64)
    }

    pub(super) fn moment(self, moment: Timestamp) -> Self {
        self.signed(moment.as_millis())
    }

    pub(super) fn moments(self, moments: impl IntoIterator<Item = Timestamp>) -> Self {
        let millis = moments.into_iter().map(Timestamp::as_millis);
        self.push(millis.collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn maybe_moments(
        self,
        moments: impl IntoIterator<Item = Option<Timestamp>>,
    ) -> Self {
        let millis = moments.into_iter().map(|moment| moment.map(Timestamp::as_millis));
        self.push(millis.collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn flag(self, flag: bool) -> Self {
        self.push(flag, Type::BOOL)
    }

    pub(super) fn maybe_flag(self, flag: Option<bool>) -> Self {
        self.push(flag, Type::BOOL)
    }
}

/// Brings a number into the range of the database. Nothing stored can lie beyond it.
pub(super) fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A row that cannot be what was written, and what is wrong with it.
pub(super) type Decoded<T> = Result<T, String>;

/// The columns of a row, read from left to right.
#[derive(Debug)]
pub(super) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(super) fn of(row: &'r Row) -> Self {
        Self { row, next: 0 }
    }

    fn take<T: FromSql<'r>>(&mut self) -> Decoded<T> {
        let column = self.next;
        self.next += 1;
        self.row.try_get(column).map_err(|error| error.to_string())
    }

    pub(super) fn text(&mut self) -> Decoded<String> {
        self.take().map(text::decode)
    }

    pub(super) fn maybe_text(&mut self) -> Decoded<Option<String>> {
        Ok(self.take::<Option<String>>()?.map(text::decode))
    }

    pub(super) fn texts(&mut self) -> Decoded<Vec<String>> {
        Ok(self.take::<Vec<String>>()?.into_iter().map(text::decode).collect())
    }

    pub(super) fn labels(&mut self) -> Decoded<Vec<String>> {
        Ok(self.take::<Vec<String>>()?.into_iter().map(text::decode_label).collect())
    }

    pub(super) fn flag(&mut self) -> Decoded<bool> {
        self.take()
    }

    pub(super) fn flags(&mut self) -> Decoded<Vec<bool>> {
        self.take()
    }

    pub(super) fn signed(&mut self) -> Decoded<i64> {
        self.take()
    }

    /// A number that starts at 0 and counts up.
    pub(super) fn number(&mut self) -> Decoded<u64> {
        let number = self.signed()?;
        u64::try_from(number).map_err(|_| format!("{number} where only numbers from 0 on can be"))
    }

    pub(super) fn maybe_number(&mut self) -> Decoded<Option<u64>> {
        let number: Option<i64> = self.take()?;
        let count = |number| u64::try_from(number).map_err(|_| format!("unexpected {number}"));
        number.map(count).transpose()
    }

    /// A small number: an outcome, a version, how often something was tried.
    pub(super) fn small(&mut self) -> Decoded<u32> {
        let number: i32 = self.take()?;
        u32::try_from(number).map_err(|_| format!("unexpected {number}"))
    }

    pub(super) fn tiny(&mut self) -> Decoded<i16> {
        self.take()
    }

    pub(super) fn moment(&mut self) -> Decoded<Timestamp> {
        self.signed().map(Timestamp::from_millis)
    }

    pub(super) fn maybe_moment(&mut self) -> Decoded<Option<Timestamp>> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_millis))
    }

    pub(super) fn run_id(&mut self) -> Decoded<RunId> {
        RunId::new(self.text()?).map_err(|error| error.to_string())
    }

    pub(super) fn revision(&mut self) -> Decoded<Revision> {
        self.number().map(Revision)
    }

    pub(super) fn driver(&mut self) -> Decoded<Driver> {
        let name = self.text()?;
        Driver::named(&name).ok_or_else(|| format!("no driver `{name}`"))
    }
}
