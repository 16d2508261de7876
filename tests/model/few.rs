//! A few things, without an allocation: a state is copied and compared millions of times.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Few<T, const N: usize> {
    things: [Option<T>; N],
}

impl<T: Copy, const N: usize> Few<T, N> {
    pub const NONE: Self = Self { things: [None; N] };

    /// Returns its place.
    pub fn push(&mut self, thing: T) -> usize {
        let place = self.len();
        assert!(
            place < N,
            "the model has no room for more than {N} of these: fewer faults, or more room"
        );
        self.things[place] = Some(thing);
        place
    }

    /// The later ones move up.
    pub fn take(&mut self, place: usize) -> Option<T> {
        let taken = self.things[place].take();
        self.things[place..].rotate_left(1);
        taken
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut().map_while(Option::as_mut)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().map_while(Option::as_ref)
    }

    /// For things whose order says nothing.
    pub fn sorted(mut self) -> Self
    where
        T: Ord,
    {
        self.things.sort_by_key(|thing| (thing.is_none(), *thing));
        self
    }

    pub fn at(&mut self, place: usize) -> &mut T {
        self.things[place]
            .as_mut()
            .expect("a place that push returned")
    }
}
