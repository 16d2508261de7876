"""Message bodies as the job board's producers write them."""

from __future__ import annotations

import json


def status_change(event_id: str, application: int, status: str) -> str:
    return json.dumps(
        {
            "type": "application.status_changed",
            "event_id": event_id,
            "application_id": application,
            "old_status": "applied",
            "new_status": status,
        }
    )


def order_placed(order: int) -> str:
    return json.dumps({"type": "order.placed", "order_id": order})
