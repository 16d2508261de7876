"""What alarms and dashboard watch, and that it exists and moves."""

from __future__ import annotations

from dataclasses import dataclass

import documented
import source
from queues import equal

# The functions of which the code counts something.
COUNTING = {"<NotifyFunction>": "notify", "<FeedbackFunction>": "feedback", "<CleanupFunction>": "cleanup"}


@dataclass(frozen=True)
class Watched:
    namespace: str
    metric: str
    dimensions: dict[str, str]
    statistic: str

    def must_exist(self) -> None:
        if self.namespace == "onemail":
            self._must_be_emitted()
            return
        metric = documented.METRICS[self.namespace, self.metric]
        equal((self.metric, frozenset(self.dimensions) in metric.dimensions), (self.metric, True))
        equal((self.metric, self.statistic, self.statistic in metric.statistics), (self.metric, self.statistic, True))

    def _must_be_emitted(self) -> None:
        function = COUNTING[self.dimensions["FunctionName"]]
        equal((self.metric, function, self.metric in source.metrics_of(function)), (self.metric, function, True))
        if "Reason" in self.dimensions:
            reason = self.dimensions["Reason"]
            equal((self.metric, self.metric in source.BY_REASON), (self.metric, True))
            equal((reason, reason in source.reasons()), (reason, True))
        equal(set(self.dimensions) <= {"FunctionName", "Reason"}, True)
        statistics = documented.COUNTED if self.metric in source.counts() else documented.TIMED
        equal((self.metric, self.statistic, self.statistic in statistics), (self.metric, self.statistic, True))
