"""etherscan-python, unmodified, against the service at QUARRY_URL: what came of each call, one JSON object a line."""

import json
import os

from etherscan import Etherscan
from etherscan.enums.fields_enum import FieldsEnum

# Where the service is: the one thing that is changed.
FieldsEnum.PREFIX = os.environ["QUARRY_URL"] + "/api?"

of = json.loads(os.environ["QUARRY_WORLD"])
eth = Etherscan("key")
days = {"start_date": of["date"], "end_date": of["date"], "sort": "asc"}
of_sender = {"address": of["sender"], "startblock": 0, "endblock": 99999999, "sort": "asc"}
page = {"page": 1, "offset": 10}
pages = {**page, "sort": "asc"}

CALLS = {
    "get_eth_balance": {"address": of["sender"]},
    "get_eth_balance_multiple": {"addresses": [of["sender"], of["nobody"]]},
    "get_normal_txs_by_address": of_sender,
    "get_normal_txs_by_address_paginated": {**of_sender, **page},
    "get_internal_txs_by_address": {**of_sender, "address": of["payee"]},
    "get_internal_txs_by_address_paginated": {**of_sender, **page, "address": of["payee"]},
    "get_internal_txs_by_txhash": {"txhash": of["paid"]},
    "get_internal_txs_by_block_range_paginated": {"startblock": 0, "endblock": 99999999, **pages},
    "get_erc20_token_transfer_events_by_address": {**of_sender, "address": of["friend"]},
    "get_erc20_token_transfer_events_by_contract_address_paginated": {"contract_address": of["coin"], **pages},
    "get_erc20_token_transfer_events_by_address_and_contract_paginated": {
        "contract_address": of["coin"],
        "address": of["friend"],
        **pages,
    },
    "get_erc721_token_transfer_events_by_address": {**of_sender, "address": of["friend"]},
    "get_erc721_token_transfer_events_by_contract_address_paginated": {"contract_address": of["deeds"], **pages},
    "get_erc721_token_transfer_events_by_address_and_contract_paginated": {
        "contract_address": of["deeds"],
        "address": of["friend"],
        **pages,
    },
    "get_mined_blocks_by_address": {"address": of["miner"]},
    "get_mined_blocks_by_address_paginated": {"address": of["miner"], **page},
    "get_block_reward_by_block_number": {"block_no": of["block"]},
    "get_est_block_countdown_time_by_block_number": {"block_no": 99999999},
    "get_block_number_by_timestamp": {"timestamp": of["time"], "closest": "before"},
    "get_contract_abi": {"address": of["coin"]},
    "get_contract_source_code": {"address": of["coin"]},
    "get_gas_oracle": {},
    "get_est_confirmation_time": {"gas_price": 2000000000},
    "get_hist_eth_balance_for_address_by_block_no": {"address": of["sender"], "block_no": of["block"]},
    "get_daily_average_block_size": days,
    "get_daily_block_count_and_rewards": days,
    "get_daily_block_rewards": days,
    "get_daily_average_block_time": days,
    "get_daily_uncle_block_count_and_rewards": days,
    "get_hist_erc20_token_total_supply_by_contract_address_and_block_no": {
        "contract_address": of["coin"],
        "block_no": of["block"],
    },
    "get_hist_erc20_token_account_balance_for_token_contract_address_by_block_no": {
        "contract_address": of["coin"],
        "address": of["sender"],
        "block_no": of["block"],
    },
    "get_token_info_by_contract_address": {"contract_address": of["coin"]},
    "get_daily_average_gas_limit": days,
    "get_eth_daily_total_gas_used": days,
    "get_eth_daily_average_gas_price": days,
    "get_eth_daily_network_tx_fee": days,
    "get_daily_new_address_count": days,
    "get_daily_network_utilization": days,
    "get_daily_tx_count": days,
    "get_eth_hist_price": days,
    "get_eth_hist_daily_market_cap": days,
    "get_daily_average_network_hash_rate": days,
    "get_daily_average_network_difficulty": days,
    "get_proxy_block_number": {},
    "get_proxy_block_by_number": {"tag": of["tag"]},
    "get_proxy_uncle_by_block_number_and_index": {"tag": of["tag"], "index": "0x0"},
    "get_proxy_block_transaction_count_by_number": {"tag": of["tag"]},
    "get_proxy_transaction_by_hash": {"txhash": of["paid"]},
    "get_proxy_transaction_by_block_number_and_index": {"tag": of["tag"], "index": "0x0"},
    "get_proxy_transaction_count": {"address": of["sender"]},
    "get_proxy_transaction_receipt": {"txhash": of["paid"]},
    "get_proxy_call": {"to": of["coin"], "data": of["supply"]},
    "get_proxy_code_at": {"address": of["coin"]},
    "get_proxy_storage_position_at": {"position": "0x3", "address": of["coin"]},
    "get_proxy_gas_price": {},
    "get_proxy_est_gas": {
        "data": "0x",
        "to": of["friend"],
        "value": "0xff22",
        "gas_price": "0x77359400",
        "gas": "0x5f5e0f",
    },
    "get_total_eth_supply": {},
    "get_eth_last_price": {},
    "get_eth_nodes_size": {**days, "client_type": "geth", "sync_mode": "default"},
    "get_total_supply_by_contract_address": {"contract_address": of["coin"]},
    "get_acc_balance_by_token_and_contract_address": {"contract_address": of["coin"], "address": of["friend"]},
    "get_contract_execution_status": {"txhash": of["failed"]},
    "get_tx_receipt_status": {"txhash": of["paid"]},
}

for name, arguments in CALLS.items():
    line = {"call": f"etherscan-python {name}"}
    try:
        line["ok"] = getattr(eth, name)(**arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the caller gets
        line["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(line))

offered = {name for name in dir(eth) if name.startswith("get_")}
print(json.dumps({"call": "etherscan-python not called", "ok": sorted(offered - set(CALLS))}))
