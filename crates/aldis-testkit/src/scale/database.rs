//! A database as a queue: so many statements at once, each for so long, first come, first served.

/// How long it takes until what is written is flushed, with others, in seconds.
const FLUSH: f64 = 0.001;

/// A modelled database.
#[derive(Clone, Debug)]
pub struct Database {
    /// When each place is free.
    free: Vec<f64>,
    worked: f64,
}

impl Database {
    /// One that works on so many statements at once.
    pub fn new(parallel: usize) -> Self {
        Self { free: vec![0.0; parallel.max(1)], worked: 0.0 }
    }

    /// Takes a statement that costs so much of the whole database, in seconds. Returns how long the answer
    /// takes.
    pub fn ask(&mut self, now: f64, cost: f64) -> f64 {
        let places = self.free.len() as f64;
        let Some(place) = self.free.iter_mut().min_by(|one, other| one.total_cmp(other)) else {
            return 0.0;
        };
        // All places together do as much as was measured; one alone does its share.
        *place = place.max(now) + cost * places;
        self.worked += cost;
        *place - now + FLUSH
    }

    /// How busy it was until then, from 0 to 1.
    pub fn busy(&self, end: f64) -> f64 {
        (self.worked / end).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    //! Waiting begins where more is asked than can be done.

    use super::*;

    #[test]
    fn it_does_as_much_as_it_can() {
        let mut database = Database::new(4);
        // A hundred a second, for ten seconds: half of what it can do.
        let waits: Vec<f64> =
            (0..1_000).map(|number| database.ask(f64::from(number) / 100.0, 1.0 / 200.0)).collect();
        assert!(waits.iter().all(|wait| (wait - 0.021).abs() < 1e-6), "{:?}", &waits[..9]);
        assert!((database.busy(10.0) - 0.5).abs() < 1e-6);
        // Twice as much as it can do: who comes last waits half of the time.
        let mut database = Database::new(4);
        let last =
            (0..1_000).map(|number| database.ask(f64::from(number) / 100.0, 1.0 / 50.0)).last();
        assert!(last.is_some_and(|wait| (9.0..11.0).contains(&wait)), "{last:?}");
    }
}
