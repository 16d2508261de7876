//! A design and all that it can reach, to be asked what is promised of it.

use std::fmt::{Display, Formatter, Result};
use std::thread;

use crate::checker::{Explored, Trace};
use crate::design::Design;
use crate::properties::{self, Property};

pub struct Checked {
    design: Design,
    explored: Explored<Design>,
}

impl Checked {
    pub fn new(design: Design) -> Self {
        Self {
            design,
            explored: Explored::all(&design),
        }
    }

    /// All at once.
    pub fn each<const N: usize>(designs: [Design; N]) -> [Self; N] {
        thread::scope(|scope| {
            designs
                .map(|design| scope.spawn(move || Self::new(design)))
                .map(|search| search.join().expect("a search that doesn't panic"))
        })
    }

    pub fn assert(&self, property: Property) {
        println!("{self}");
        if let Some(trace) = self.breach(property) {
            panic!("{self}\nis broken by\n{trace}");
        }
    }

    pub fn assert_never_stuck(&self) {
        println!("{self}");
        if let Some(trace) = self.trap() {
            panic!("{self}\nis stuck after\n{trace}");
        }
    }

    /// Prints the shortest way in which the property is broken.
    pub fn assert_broken(&self, property: Property) {
        match self.breach(property) {
            Some(trace) => println!("{self}\nis broken by\n{trace}"),
            None => panic!("{self}\nshould be broken, and isn't"),
        }
    }

    /// Prints the shortest way into being stuck.
    pub fn assert_stuck(&self) {
        match self.trap() {
            Some(trace) => println!("{self}\nis stuck after\n{trace}"),
            None => panic!("{self}\nshould get stuck, and doesn't"),
        }
    }

    fn breach(&self, property: Property) -> Option<Trace<Design>> {
        self.explored.breach(|state| property(&self.design, state))
    }

    fn trap(&self) -> Option<Trace<Design>> {
        self.explored
            .trap(|state| properties::all_is_settled(&self.design, state))
    }
}

impl Display for Checked {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}  {}", self.explored, self.design)
    }
}
