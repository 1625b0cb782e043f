//! Values with limits: each type says what it takes, wherever the value is written.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A span of time in seconds: `90`, `90m`, `2h`. Never more than a year, so never unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds<const LEAST: u64>(pub(crate) u64);

/// A span of time in seconds, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecondsOrNever(pub(crate) Option<u64>);

/// A number within limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count<const LEAST: u64, const MOST: u64>(pub(crate) u64);

/// An amount of money in millionths of a dollar, written in dollars: `2.50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dollars(pub(crate) u64);

/// What was written instead of a value that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}")]
pub(crate) struct Unfit {
    expected: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Span { least: u64 },
    SpanOrNever,
    Count { least: u64, most: u64 },
    Dollars,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span { least: 0 } => {
                f.write_str("a span of time such as `90s`, `10m` or `2h`, or 0 for never")
            }
            Self::Span { .. } => f.write_str(
                "a span of time such as `90s`, `10m` or `2h`, at most 366 days; 0 is not unlimited",
            ),
            Self::SpanOrNever => {
                f.write_str("a span of time such as `90s`, `10m` or `2h`, or `never`")
            }
            Self::Count { least: 0, most } => write!(f, "a number up to {most}, or 0 for never"),
            Self::Count { least, most } if *most > u64::from(u32::MAX) => {
                write!(f, "a number from {least}; 0 is not unlimited")
            }
            Self::Count { least, most } => {
                write!(f, "a number from {least} to {most}; 0 is not unlimited")
            }
            Self::Dollars => f.write_str("an amount in dollars such as 2.50, more than 0"),
        }
    }
}

/// The address of a database: `postgres://me@db.example/aldis`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(crate) struct StoreUrl(String);

impl TryFrom<String> for StoreUrl {
    type Error = &'static str;

    /// What was written is not repeated: it may hold a password.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_one = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        if is_one { Ok(Self(text)) } else { Err("expected postgres://USER@HOST/DATABASE") }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreUrl(..)")
    }
}

/// The address of a collector. It may hold a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(crate) struct CollectorUrl(String);

impl TryFrom<String> for CollectorUrl {
    type Error = &'static str;

    /// What was written is not repeated: it may hold a password.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_one = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        if is_one { Ok(Self(text)) } else { Err("expected http://HOST:4318") }
    }
}

impl From<CollectorUrl> for String {
    fn from(url: CollectorUrl) -> Self {
        url.0
    }
}

impl fmt::Debug for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CollectorUrl(..)")
    }
}

const YEAR: u64 = 366 * 24 * 60 * 60;
const UNITS: [(&str, u64); 4] = [("d", 24 * 60 * 60), ("h", 60 * 60), ("m", 60), ("s", 1)];
const MICRO: u64 = 1_000_000;

impl<const LEAST: u64> Seconds<LEAST> {
    fn new(seconds: Option<u64>) -> Result<Self, Unfit> {
        let fits = |seconds: &u64| (LEAST..=YEAR).contains(seconds);
        seconds.filter(fits).map(Self).ok_or(Unfit { expected: Expected::Span { least: LEAST } })
    }
}

impl<const LEAST: u64> FromStr for Seconds<LEAST> {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let unit = text.get(digits.len()..).unwrap_or_default();
        let factor = match unit {
            "" => Some(1),
            _ => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
        };
        Self::new(digits.parse::<u64>().ok().zip(factor).and_then(|(n, unit)| n.checked_mul(unit)))
    }
}

impl<const LEAST: u64> fmt::Display for Seconds<LEAST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = UNITS.iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        match largest {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => f.write_str("0s"),
        }
    }
}

impl FromStr for SecondsOrNever {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        if text == "never" {
            return Ok(Self(None));
        }
        let span = text.parse::<Seconds<1>>();
        let span = span.map_err(|_| Unfit { expected: Expected::SpanOrNever })?;
        Ok(Self(Some(span.0)))
    }
}

impl fmt::Display for SecondsOrNever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => Seconds::<1>(seconds).fmt(f),
            None => f.write_str("never"),
        }
    }
}

impl<const LEAST: u64, const MOST: u64> Count<LEAST, MOST> {
    fn new(count: Option<u64>) -> Result<Self, Unfit> {
        let expected = Expected::Count { least: LEAST, most: MOST };
        let fits = |count: &u64| (LEAST..=MOST).contains(count);
        count.filter(fits).map(Self).ok_or(Unfit { expected })
    }

    /// Returns it as the machines count.
    pub(crate) fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const LEAST: u64, const MOST: u64> FromStr for Count<LEAST, MOST> {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        Self::new(text.parse().ok())
    }
}

impl<const LEAST: u64, const MOST: u64> fmt::Display for Count<LEAST, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Dollars {
    type Err = Unfit;

    /// Reads the decimal digits themselves: money is not to be rounded.
    fn from_str(text: &str) -> Result<Self, Unfit> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let amount = (part.len() <= 6 && is_digits(part) && is_digits(whole)).then(|| {
            let part = format!("{part:0<6}").parse::<u64>().ok()?;
            whole.parse::<u64>().ok()?.checked_mul(MICRO)?.checked_add(part)
        });
        let fits = |amount: &u64| (1..=MICRO * MICRO).contains(amount);
        amount.flatten().filter(fits).map(Self).ok_or(Unfit { expected: Expected::Dollars })
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / MICRO, self.0 % MICRO);
        let trimmed = text.trim_end_matches('0');
        // Cents are always there.
        let cents = text.find('.').map_or(text.len(), |dot| dot + 3);
        f.write_str(text.get(..trimmed.len().max(cents)).unwrap_or(&text))
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Count<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

macro_rules! as_shown {
    ($([$($limits:tt)*] $type:ty;)*) => {$(
        impl<$($limits)*> Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

as_shown! {
    [const LEAST: u64] Seconds<LEAST>;
    [] SecondsOrNever;
    [] Dollars;
}

/// Takes numbers and text alike, as text.
struct TextVisitor<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = Unfit>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match "".parse::<T>() {
            Err(unfit) => write!(f, "{}", unfit.expected),
            Ok(_) => f.write_str("a value"),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|unfit| E::custom(format!("{unfit}, found `{text}`")))
    }
}

macro_rules! as_written {
    ($([$($limits:tt)*] $type:ty;)*) => {$(
        impl<'de, $($limits)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(TextVisitor(std::marker::PhantomData))
            }
        }
    )*};
}

as_written! {
    [const LEAST: u64] Seconds<LEAST>;
    [] SecondsOrNever;
    [const LEAST: u64, const MOST: u64] Count<LEAST, MOST>;
    [] Dollars;
}

/// What editors are told that a value may be.
macro_rules! described {
    ($([$($limits:tt)*] $type:ty = $schema:tt;)*) => {$(
        impl<$($limits)*> JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

described! {
    [const LEAST: u64, const MOST: u64] Count<LEAST, MOST> =
        { "type": "integer", "minimum": LEAST, "maximum": MOST };
    [const LEAST: u64] Seconds<LEAST> =
        { "type": ["integer", "string"], "minimum": LEAST, "maximum": YEAR, "pattern": "^[0-9]+[smhd]?$" };
    [] SecondsOrNever =
        { "type": ["integer", "string"], "minimum": 1, "maximum": YEAR, "pattern": "^([0-9]+[smhd]?|never)$" };
    [] Dollars =
        { "type": ["number", "string"], "exclusiveMinimum": 0, "pattern": r"^[0-9]*(\.[0-9]{1,6})?$" };
}

#[cfg(test)]
mod tests {
    //! What is taken, and what is not.

    use super::*;

    #[test]
    fn spans_of_time() {
        for (text, seconds) in [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("366d", Some(YEAR)),
            ("367d", None),
            ("0", None),
            ("0h", None),
            ("", None),
            ("m", None),
            ("-5m", None),
            ("5 m", None),
            ("1.5h", None),
            ("soon", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(text.parse::<Seconds<1>>().ok().map(|span| span.0), seconds, "{text}");
        }
        assert_eq!("0".parse::<Seconds<0>>().unwrap().0, 0);
        for text in ["0s", "90s", "10m", "2h", "3d"] {
            assert_eq!(text.parse::<Seconds<0>>().unwrap().to_string(), text);
        }
        for (text, seconds) in [("never", None), ("1h", Some(3_600))] {
            let read: SecondsOrNever = text.parse().unwrap();
            assert_eq!((read.0, &*read.to_string()), (seconds, text));
        }
        for text in ["0", "", "Never", "none"] {
            assert!(text.parse::<SecondsOrNever>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_of_money() {
        for (text, micro, shown) in [
            ("2.50", 2_500_000, "2.50"),
            ("3", 3_000_000, "3.00"),
            ("0.000001", 1, "0.000001"),
            ("1000000", MICRO * MICRO, "1000000.00"),
        ] {
            let amount: Dollars = text.parse().unwrap();
            assert_eq!((amount.0, &*amount.to_string()), (micro, shown), "{text}");
        }
        for text in ["", ".", "0", "-1", "1000001", "1.0000001", "1e3", "inf", "NaN", "$2"] {
            assert!(text.parse::<Dollars>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_within_limits() {
        for (text, fits) in
            [("1", true), ("50", true), ("0", false), ("51", false), ("-1", false), ("1.5", false)]
        {
            assert_eq!(text.parse::<Count<1, 50>>().is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn whatever_is_written_is_read_again() {
        let value = serde_json::json!([90, "90m", 1.25]);
        let read: (Seconds<1>, Seconds<1>, Dollars) = serde_json::from_value(value).unwrap();
        let again = serde_json::to_value(read).unwrap();
        assert_eq!(again, serde_json::json!(["90s", "90m", "1.25"]));
        assert_eq!(
            serde_json::from_value::<(Seconds<1>, Seconds<1>, Dollars)>(again).unwrap(),
            read
        );
    }
}
