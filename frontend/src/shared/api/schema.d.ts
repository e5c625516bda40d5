// Made by `npm run schema` from the backend; do not edit.
export interface paths {
    "/auth/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Register */
        post: operations["register_auth_register_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Login */
        post: operations["login_auth_login_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Logout
         * @description Forget the cookie of this browser.
         */
        post: operations["logout_auth_logout_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout_all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Logout All
         * @description End all sessions, everywhere.
         */
        post: operations["logout_all_auth_logout_all_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Me */
        get: operations["me_auth_me_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change Password
         * @description Set a new password. All other sessions end; the token in the answer is this one's new one.
         */
        post: operations["change_password_auth_password_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/wallet/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Wallet */
        get: operations["wallet_auth_wallet__user_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/wallet/{user_id}/transfers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Wallet Transfers
         * @description Movements of the wallet, newest first.
         */
        get: operations["wallet_transfers_auth_wallet__user_id__transfers_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Keys */
        get: operations["list_keys_agent_keys_get"];
        put?: never;
        /** Create Key */
        post: operations["create_key_agent_keys_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Register */
        post: operations["register_agent_register_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/request_rank": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request Rank
         * @description A rank that was reserved for one of the agent's slots. With `wait_s` the call stays open, with no session, until there is one.
         */
        post: operations["request_rank_agent_request_rank_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/checkpoint_url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checkpoint Url
         * @description Where rank 0 puts a checkpoint.
         */
        post: operations["checkpoint_url_agent_checkpoint_url_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/checkpoint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checkpoint
         * @description The checkpoint is uploaded: it is checked and written anew, and the next gang starts from it.
         */
        post: operations["checkpoint_agent_checkpoint_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Heartbeat
         * @description An idle agent's is noted, no more: most of a server's calls are these.
         */
        post: operations["heartbeat_agent_heartbeat_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Profile
         * @description What a machine takes and how it stands, as it says; and how the server sees it.
         */
        post: operations["profile_agent_profile_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/request_task": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request Task
         * @description Work for an agent. With `wait_s` the call stays open, with no session, until there is some.
         */
        post: operations["request_task_agent_request_task_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Metrics */
        post: operations["metrics_agent_metrics_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Logs */
        post: operations["logs_agent_logs_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/upload_url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Upload Url */
        post: operations["upload_url_agent_upload_url_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/output_url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Output Url
         * @description Where to put a file that the script left in outputs/.
         */
        post: operations["output_url_agent_output_url_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/upload_result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload Result
         * @description Upload model.pth through the server itself, as the raw body: for agents that cannot reach the storage's links.
         */
        post: operations["upload_result_agent_upload_result_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/complete_task": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Complete Task */
        post: operations["complete_task_agent_complete_task_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/fail_task": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Fail Task */
        post: operations["fail_task_agent_fail_task_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke Key
         * @description End a key, the tokens of the machines that registered with it, and what they are working on.
         */
        delete: operations["revoke_key_agent_keys__key_id__delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove Agent
         * @description Take a machine off the list; its token and its work end.
         */
        delete: operations["remove_agent_agent__agent_id__delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/datasets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Datasets */
        get: operations["list_datasets_datasets_get"];
        put?: never;
        /**
         * Upload Dataset
         * @description Upload a CSV: as the body itself, or as the field `file_data` of a form. 422 names the line that cannot be used.
         */
        post: operations["upload_dataset_datasets_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/datasets/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin Upload
         * @description Begin a resumable upload. Send the bytes with PATCH, in as many pieces as the network needs.
         */
        post: operations["begin_upload_datasets_uploads_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/datasets/uploads/{upload_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look At Upload
         * @description How much has arrived, also as the headers Upload-Offset and Upload-Length.
         */
        get: operations["look_at_upload_datasets_uploads__upload_id__get"];
        put?: never;
        post?: never;
        /** Give Up Upload */
        delete: operations["give_up_upload_datasets_uploads__upload_id__delete"];
        options?: never;
        head?: never;
        /**
         * Continue Upload
         * @description Add the body's bytes at Upload-Offset; 409 names the right one. The last piece is answered with the dataset.
         */
        patch: operations["continue_upload_datasets_uploads__upload_id__patch"];
        trace?: never;
    };
    "/datasets/{dataset_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Dataset */
        get: operations["get_dataset_datasets__dataset_id__get"];
        put?: never;
        post?: never;
        /**
         * Delete Dataset
         * @description Jobs that were made from it go on.
         */
        delete: operations["delete_dataset_datasets__dataset_id__delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/datasets/{dataset_id}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Preview Dataset
         * @description The first records, however large the file is. With `chunks`: the rows of each chunk and, of a column, its values there.
         */
        get: operations["preview_dataset_datasets__dataset_id__preview_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload
         * @description Submit a job with its files in one multipart form. The body is read only after the caller is known.
         */
        post: operations["upload_jobs_upload_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submit
         * @description Submit a job over a dataset that is already there: with a script, or with a `model_type` and no code at all.
         */
        post: operations["submit_jobs_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/list/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Jobs
         * @description The caller's jobs, newest first.
         */
        get: operations["list_jobs_jobs_list__user_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/download/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download
         * @description Where the final model can be had; null until there is one.
         */
        get: operations["download_jobs_download__job_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Job */
        get: operations["get_job_jobs__job_id__get"];
        put?: never;
        post?: never;
        /**
         * Delete
         * @description Remove a finished job and its files.
         */
        delete: operations["delete_jobs__job_id__delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel
         * @description End a job. Updates that were already uploaded are verified and paid; the rest comes back.
         */
        post: operations["cancel_jobs__job_id__cancel_post"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/results": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Results */
        get: operations["results_jobs__job_id__results_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/artifacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Artifacts */
        get: operations["list_artifacts_jobs__job_id__artifacts_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/script": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Script
         * @description The script itself, from this origin wherever files lie: for pages that show it. Links to download it are among the artifacts.
         */
        get: operations["script_jobs__job_id__script_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/requirements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Requirements
         * @description Its requirements.txt; empty when it has none.
         */
        get: operations["requirements_jobs__job_id__requirements_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/card": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Card
         * @description What the model was made from, by whom, and how well.
         */
        get: operations["card_jobs__job_id__card_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/card.md": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Card As Markdown
         * @description The same for people, to lie beside the model.
         */
        get: operations["card_as_markdown_jobs__job_id__card_md_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/metrics.csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics As Csv
         * @description All rounds' series at once, a row for each report.
         */
        get: operations["metrics_as_csv_jobs__job_id__metrics_csv_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics
         * @description Per-epoch series, of all rounds or of one. `next` is the `after` of the following page.
         */
        get: operations["metrics_jobs__job_id__metrics_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{job_id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Logs
         * @description What the attempts printed: head and tail of each.
         */
        get: operations["logs_jobs__job_id__logs_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Summary */
        get: operations["summary_stats_summary_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Agents */
        get: operations["list_agents_stats_agents_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/agents/online": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Online */
        get: operations["list_online_stats_agents_online_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/agents/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Agent */
        get: operations["get_agent_stats_agents__agent_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/my-agents/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** My Agents */
        get: operations["my_agents_stats_my_agents__user_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats/seller-tasks/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Seller Tasks */
        get: operations["seller_tasks_stats_seller_tasks__user_id__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/files/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download
         * @description One object's bytes; `Range` is understood.
         */
        get: operations["download_file"];
        /**
         * Upload
         * @description Store the body, whole or not at all. 413 when it is larger than the link allows.
         */
        put: operations["upload_file"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/install.sh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Install Script
         * @description A shell script that installs the worker into ~/.gridx-worker/venv and says how to run it.
         */
        get: operations["install_script_install_sh_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/downloads/worker": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Wheels
         * @description The worker's wheels: of this server's own version, which is the one that speaks its protocol.
         */
        get: operations["list_wheels_downloads_worker_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/downloads/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download Wheel
         * @description One of the wheels, by its name.
         */
        get: operations["download_wheel_downloads__file__get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Health
         * @description Answers 200 while the database can be reached, else 503.
         */
        get: operations["health_health_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics
         * @description Counts for Prometheus.
         */
        get: operations["metrics_metrics_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** AgentCounts */
        AgentCounts: {
            /** Total */
            total: number;
            /** Online */
            online: number;
            /** Idle */
            idle: number;
            /** Busy */
            busy: number;
            /** Offline */
            offline: number;
        };
        /** AgentResult */
        AgentResult: {
            /** Agent Id */
            agent_id: string;
            /** Updates */
            updates: number;
            /** Rows */
            rows: number;
            /** Mean Loss */
            mean_loss: number | null;
            /** Mean Accuracy */
            mean_accuracy: number | null;
            /** Train S */
            train_s: number;
        };
        /** AgentView */
        AgentView: {
            /** Id */
            id: string;
            /**
             * Status
             * @enum {string}
             */
            status: "IDLE" | "BUSY" | "OFFLINE";
            /** Hardware */
            hardware: {
                [key: string]: unknown;
            };
            /** Isolation */
            isolation: string;
            /**
             * Registered At
             * Format: date-time
             */
            registered_at: string;
            /**
             * Last Seen At
             * Format: date-time
             */
            last_seen_at: string;
            /** Tasks Completed */
            tasks_completed: number;
            /** Current Task */
            current_task: number | null;
            /** Hostname */
            hostname: string | null;
            /** Accepts */
            accepts: string;
            /** Paused */
            paused: string | null;
            /** Quarantined Until */
            quarantined_until: string | null;
            /** Quarantine Reason */
            quarantine_reason: string | null;
            doctor: components["schemas"]["DoctorView"] | null;
        };
        /** ArtifactList */
        ArtifactList: {
            /** Items */
            items: components["schemas"]["ArtifactView"][];
            /** Next */
            next?: number | null;
        };
        /** ArtifactView */
        ArtifactView: {
            /** Kind */
            kind: string;
            /** Filename */
            filename: string;
            /** Round */
            round?: number | null;
            /** Subtask Id */
            subtask_id?: number | null;
            /** Chunk */
            chunk?: number | null;
            /** Agent Id */
            agent_id?: string | null;
            /** Epoch */
            epoch?: number | null;
            /** Size */
            size?: number | null;
            /** Sha256 */
            sha256?: string | null;
            /** Created At */
            created_at?: string | null;
            /** Url */
            url: string;
        };
        /** AttemptView */
        AttemptView: {
            /** Attempt */
            attempt: number;
            /** Agent Id */
            agent_id: string;
            /** Status */
            status: string;
            /** Phase */
            phase: string | null;
            /** Progress */
            progress: number | null;
            /** Epoch */
            epoch: number | null;
            /** Loss */
            loss: number | null;
            /** Accuracy */
            accuracy: number | null;
            /** Reason */
            reason: string | null;
            /** Fault */
            fault: string | null;
            /** Train S */
            train_s: number | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /** Finished At */
            finished_at: string | null;
            /** Paid */
            paid: number;
        };
        /** CardRound */
        CardRound: {
            /** Round */
            round: number;
            /** Updates */
            updates: number;
            /** Rows */
            rows: number;
            /** Convergence Delta */
            convergence_delta: number | null;
            /** Step Norm */
            step_norm: number | null;
            /** Sha256 */
            sha256: string | null;
            /** Held Out */
            held_out: {
                [key: string]: number;
            };
        };
        /** CardShare */
        CardShare: {
            /** Agent Id */
            agent_id: string;
            /** Updates */
            updates: number;
            /** Share */
            share: number;
            /** Train S */
            train_s: number;
        };
        /**
         * CheckpointRequest
         * @description POST /agent/checkpoint, after the upload. Repeating it is harmless.
         */
        CheckpointRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Number */
            number: number;
            /** Size */
            size: number;
            /** Sha256 */
            sha256: string;
        };
        /**
         * CheckpointUrlRequest
         * @description POST /agent/checkpoint_url: where to PUT a checkpoint.
         */
        CheckpointUrlRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Number */
            number: number;
            /** Size */
            size: number;
        };
        /** ChunkPreview */
        ChunkPreview: {
            /** Chunk */
            chunk: number;
            /** Rows */
            rows: number;
            /** Labels */
            labels: number[] | null;
        };
        /** CompleteReply */
        CompleteReply: {
            /**
             * Status
             * @enum {string}
             */
            status: "VERIFYING" | "COMPLETED" | "REFUSED";
        };
        /**
         * CompleteRequest
         * @description POST /agent/complete_task, after the upload. Repeating it is harmless.
         */
        CompleteRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Sha256 */
            sha256: string;
            /** Size */
            size: number;
            /**
             * Metrics
             * @default {}
             */
            metrics: {
                [key: string]: number;
            };
            /** Train S */
            train_s?: number | null;
        };
        /** DatasetList */
        DatasetList: {
            /** Items */
            items: components["schemas"]["DatasetOut"][];
            /** Next */
            next: number | null;
        };
        /** DatasetOut */
        DatasetOut: {
            /** Id */
            id: number;
            /** Name */
            name: string;
            /** Rows */
            rows: number;
            /** Columns */
            columns: string[];
            /** Delimiter */
            delimiter: string;
            /** Bytes */
            bytes: number;
            /** Sha256 */
            sha256: string;
            /** Warnings */
            warnings: string[];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * DatasetPreview
         * @description The first records, as texts. Records may be longer or shorter than the header where the file's are.
         */
        DatasetPreview: {
            /** Columns */
            columns: string[];
            /** Rows */
            rows: string[][];
            deal?: components["schemas"]["DealPreview"] | null;
        };
        /**
         * DealPreview
         * @description How these choices would deal the rows; with the seed of a job, exactly as that job will.
         */
        DealPreview: {
            /** Labels */
            labels: string[];
            /** Chunks */
            chunks: components["schemas"]["ChunkPreview"][];
            /** Warnings */
            warnings: string[];
            /** Proposed */
            proposed: string | null;
        };
        /**
         * DoctorCheck
         * @description One line of `gridx-worker doctor`.
         */
        DoctorCheck: {
            /** Name */
            name: string;
            /** Problem */
            problem?: string | null;
            /** Fix */
            fix?: string | null;
        };
        /**
         * DoctorReport
         * @description What `gridx-worker doctor` found on a machine.
         */
        DoctorReport: {
            /** Age S */
            age_s: number;
            /** Checks */
            checks: components["schemas"]["DoctorCheck"][];
            /** Score */
            score?: number | null;
        };
        /** DoctorView */
        DoctorView: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Score */
            score: number | null;
            /** Checks */
            checks: components["schemas"]["DoctorCheck"][];
        };
        /** DownloadView */
        DownloadView: {
            /** Job Id */
            job_id: number;
            /** Title */
            title: string;
            /** Status */
            status: string;
            /** Final Result Url */
            final_result_url: string | null;
        };
        /**
         * EarlyStopping
         * @description End a job when the held-out rows have shown nothing better for `patience` rounds.
         */
        EarlyStopping: {
            /**
             * Patience
             * @default 3
             */
            patience: number;
            /**
             * Min Delta
             * @default 0
             */
            min_delta: number;
            /** Monitor */
            monitor?: ("accuracy" | "loss") | null;
        };
        /**
         * ErrorBody
         * @description The body of every answer that is not 2xx.
         */
        ErrorBody: {
            /** Code */
            code: string;
            /** Detail */
            detail: string;
        };
        /**
         * EvaluationView
         * @description The round's model on held-out rows: the mean of what the agents' runs of evaluate() returned.
         */
        EvaluationView: {
            /** Metrics */
            metrics: {
                [key: string]: number;
            };
            /** Rows */
            rows: number;
            /** Agents */
            agents: string[];
            /** Differ */
            differ: string[];
        };
        /** EventView */
        EventView: {
            /** Id */
            id: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** What */
            what: string;
            /** Subtask Id */
            subtask_id: number | null;
            /** Old */
            old: string | null;
            /** New */
            new: string;
            /** Text */
            text: string;
        };
        /**
         * FailRequest
         * @description POST /agent/fail_task. Repeating it is harmless.
         */
        FailRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "script" | "output" | "memory" | "timeout" | "dependencies" | "agent" | "shutdown";
            /** Reason */
            reason: string;
            /** Exit Code */
            exit_code?: number | null;
        };
        /**
         * GangTask
         * @description What a rank of synchronous training needs beyond an ordinary attempt.
         */
        GangTask: {
            /** Gang Id */
            gang_id: number;
            /** Rank */
            rank: number;
            /** World Size */
            world_size: number;
            /** Orchestrator Port */
            orchestrator_port: number;
            /**
             * Orchestrator Is Secure
             * @default false
             */
            orchestrator_is_secure: boolean;
            /** Secret */
            secret: string;
            /**
             * Master Port
             * @default 29500
             */
            master_port: number;
            /**
             * Backend
             * @default gloo
             * @enum {string}
             */
            backend: "gloo" | "nccl";
            /** Checkpoint Url */
            checkpoint_url?: string | null;
            /** Checkpoint Sha256 */
            checkpoint_sha256?: string | null;
        };
        /**
         * GangView
         * @description One try at a synchronous training: all its ranks begin and end together.
         */
        GangView: {
            /** Number */
            number: number;
            /** Status */
            status: string;
            /** Reason */
            reason: string | null;
            /** Started At */
            started_at: string | null;
            /** Ended At */
            ended_at: string | null;
            /** Resumed From */
            resumed_from: number | null;
            /** Checkpoints */
            checkpoints: number;
            /** Ranks */
            ranks: components["schemas"]["RankView"][];
        };
        /**
         * Hardware
         * @description What a machine is, as it reports itself at registration.
         */
        Hardware: {
            /** Hostname */
            hostname: string;
            /** Os */
            os: string;
            /** Cores */
            cores: number;
            /** Ram Bytes */
            ram_bytes: number;
            /** Disk Free Bytes */
            disk_free_bytes: number;
            /** Gpu Name */
            gpu_name?: string | null;
            /**
             * Gpu Count
             * @default 0
             */
            gpu_count: number;
            /**
             * Vram Bytes
             * @default 0
             */
            vram_bytes: number;
            /** Python Version */
            python_version: string;
            /** Torch Version */
            torch_version?: string | null;
            /** Image Id */
            image_id?: string | null;
            /**
             * Isolation
             * @enum {string}
             */
            isolation: "docker" | "docker+runsc" | "process";
            /** Worker Version */
            worker_version?: string | null;
        };
        /** HeartbeatReply */
        HeartbeatReply: {
            /** Heartbeat S */
            heartbeat_s: number;
            /** Poll S */
            poll_s: number;
            /**
             * Cancel
             * @default false
             */
            cancel: boolean;
            /** Cancel Reason */
            cancel_reason?: string | null;
        };
        /**
         * HeartbeatRequest
         * @description POST /agent/heartbeat. With `task_id` it also extends that attempt's lease.
         */
        HeartbeatRequest: {
            /** Task Id */
            task_id?: number | null;
            /** Lease Token */
            lease_token?: string | null;
            /** Phase */
            phase?: ("DOWNLOADING" | "INSTALLING" | "STARTING" | "TRAINING" | "UPLOADING") | null;
            /** Progress */
            progress?: number | null;
            /** Epoch */
            epoch?: number | null;
        };
        /** JobCounts */
        JobCounts: {
            /** Total */
            total: number;
            /** Queued */
            queued: number;
            /** Running */
            running: number;
            /** Completed */
            completed: number;
            /** Failed */
            failed: number;
        };
        /** JobCreated */
        JobCreated: {
            /** Job Id */
            job_id: number;
            /** Status */
            status: string;
            /** Price */
            price: number;
            /** Message */
            message: string;
            /** Idle Agents */
            idle_agents: number;
            /** Warnings */
            warnings: string[];
        };
        /**
         * JobRequest
         * @description POST /jobs: a script, or a model to be trained without one, over a dataset that is already there.
         */
        JobRequest: {
            /** Title */
            title: string;
            /** Model Type */
            model_type?: string | null;
            /**
             * Arguments
             * @default []
             */
            arguments: string[];
            /**
             * Mode
             * @default federated
             * @enum {string}
             */
            mode: "federated" | "ddp";
            /**
             * Chunks
             * @default 5
             */
            chunks: number;
            /**
             * Rounds
             * @default 1
             */
            rounds: number;
            /**
             * Partitioner
             * @default iid
             */
            partitioner: string;
            /**
             * Partitioner Options
             * @default {}
             */
            partitioner_options: {
                [key: string]: unknown;
            };
            /**
             * Strategy
             * @default fedavg
             */
            strategy: string;
            /**
             * Strategy Options
             * @default {}
             */
            strategy_options: {
                [key: string]: unknown;
            };
            /**
             * Hyperparameters
             * @default {}
             */
            hyperparameters: {
                [key: string]: unknown;
            };
            /**
             * Time Limit S
             * @default 3600
             */
            time_limit_s: number;
            /**
             * @default {
             *       "ram_bytes": 0,
             *       "gpu": false,
             *       "vram_bytes": 0
             *     }
             */
            needs: components["schemas"]["Needs"];
            /** Min Updates */
            min_updates?: number | null;
            /**
             * Fraction
             * @default 1
             */
            fraction: number;
            /** Round Deadline S */
            round_deadline_s?: number | null;
            /**
             * Backups
             * @default true
             */
            backups: boolean;
            /**
             * Held Out
             * @default 0
             */
            held_out: number;
            /**
             * Evaluations
             * @default 2
             */
            evaluations: number;
            early_stopping?: components["schemas"]["EarlyStopping"] | null;
            /** Initial Job Id */
            initial_job_id?: number | null;
            /** Initial Round */
            initial_round?: number | null;
            /** Seed */
            seed?: number | null;
            /**
             * Keep Updates
             * @default false
             */
            keep_updates: boolean;
            /**
             * Require Idle
             * @default false
             */
            require_idle: boolean;
            /** Dataset Id */
            dataset_id?: number | null;
            /** Dataset Name */
            dataset_name?: string | null;
            /** Target Column */
            target_column?: string | null;
            /** Script */
            script?: string | null;
            /**
             * Requirements
             * @default
             */
            requirements: string;
        };
        /**
         * JobSummary
         * @description A job as the list shows it.
         */
        JobSummary: {
            /** Id */
            id: number;
            /** Title */
            title: string;
            /** Status */
            status: string;
            /** Reason */
            reason: string | null;
            /** Dataset Id */
            dataset_id: number;
            /** Dataset Name */
            dataset_name: string;
            /** Recipe */
            recipe: string | null;
            /** Mode */
            mode: string;
            /** Chunks */
            chunks: number;
            /** Rounds */
            rounds: number;
            /** Current Round */
            current_round: number;
            /** Strategy */
            strategy: string;
            /** Partitioner */
            partitioner: string;
            /** Price */
            price: number;
            /** Total Subtasks */
            total_subtasks: number;
            /** Completed Subtasks */
            completed_subtasks: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Started At */
            started_at: string | null;
            /** Finished At */
            finished_at: string | null;
        };
        /** JobView */
        JobView: {
            /** Id */
            id: number;
            /** Title */
            title: string;
            /** Status */
            status: string;
            /** Reason */
            reason: string | null;
            /** Dataset Id */
            dataset_id: number;
            /** Dataset Name */
            dataset_name: string;
            /** Recipe */
            recipe: string | null;
            /** Mode */
            mode: string;
            /** Chunks */
            chunks: number;
            /** Rounds */
            rounds: number;
            /** Current Round */
            current_round: number;
            /** Strategy */
            strategy: string;
            /** Partitioner */
            partitioner: string;
            /** Price */
            price: number;
            /** Total Subtasks */
            total_subtasks: number;
            /** Completed Subtasks */
            completed_subtasks: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Started At */
            started_at: string | null;
            /** Finished At */
            finished_at: string | null;
            /** Arguments */
            arguments: string[];
            /** Partitioner Options */
            partitioner_options: {
                [key: string]: unknown;
            };
            /** Strategy Options */
            strategy_options: {
                [key: string]: unknown;
            };
            /** Hyperparameters */
            hyperparameters: {
                [key: string]: unknown;
            };
            /** Time Limit S */
            time_limit_s: number;
            needs: components["schemas"]["Needs"];
            /** Min Updates */
            min_updates: number;
            /** Chunks Per Round */
            chunks_per_round: number;
            /** Round Deadline S */
            round_deadline_s: number | null;
            /** Backups */
            backups: boolean;
            /** Held Out Share */
            held_out_share: number;
            /** Evaluations */
            evaluations: number;
            early_stopping: components["schemas"]["EarlyStopping"] | null;
            /** Has Initial Model */
            has_initial_model: boolean;
            /** Best Round */
            best_round: number | null;
            /** Seed */
            seed: number;
            /** Units */
            units: number;
            /** Held */
            held: number;
            /** Paid */
            paid: number;
            /** Warnings */
            warnings: string[];
            /** Waiting For */
            waiting_for: string | null;
            /** Round List */
            round_list: components["schemas"]["RoundView"][];
            /** Subtasks */
            subtasks: components["schemas"]["SubtaskView"][];
            gang: components["schemas"]["GangView"] | null;
            /** Events */
            events: components["schemas"]["EventView"][];
        };
        /** KeyCreated */
        KeyCreated: {
            /** Id */
            id: number;
            /** Label */
            label: string;
            /** Key */
            key: string;
        };
        /** KeyList */
        KeyList: {
            /** Items */
            items: components["schemas"]["KeyView"][];
            /** Next */
            next?: number | null;
        };
        /** KeyRequest */
        KeyRequest: {
            /** Label */
            label: string;
        };
        /** KeyView */
        KeyView: {
            /** Id */
            id: number;
            /** Label */
            label: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Revoked At */
            revoked_at: string | null;
        };
        /**
         * Limits
         * @description Caps that the agent enforces on one attempt, beside those its provider set (the smaller one counts).
         */
        Limits: {
            /**
             * Output Bytes
             * @default 2147483648
             */
            output_bytes: number;
            /**
             * Outputs Count
             * @default 20
             */
            outputs_count: number;
            /**
             * Outputs Bytes
             * @default 67108864
             */
            outputs_bytes: number;
            /**
             * Log Bytes
             * @default 10485760
             */
            log_bytes: number;
            /**
             * Install S
             * @default 600
             */
            install_s: number;
            /**
             * Install Bytes
             * @default 2147483648
             */
            install_bytes: number;
        };
        /** LogList */
        LogList: {
            /** Items */
            items: components["schemas"]["LogView"][];
            /** Next */
            next?: number | null;
        };
        /** LogView */
        LogView: {
            /** Subtask Id */
            subtask_id: number;
            /** Round */
            round: number;
            /** Chunk */
            chunk: number;
            /** Attempt */
            attempt: number;
            /** Agent Id */
            agent_id: string;
            /** Text */
            text: string;
            /** Total Bytes */
            total_bytes: number;
        };
        /** LoginIn */
        LoginIn: {
            /** Email */
            email: string;
            /**
             * Password
             * Format: password
             */
            password: string;
        };
        /** LogsReply */
        LogsReply: {
            /** Offset */
            offset: number;
        };
        /**
         * LogsRequest
         * @description POST /agent/logs. `offset` = bytes of output (UTF-8, as sent) before `text`, so that a repeated call stores nothing twice.
         */
        LogsRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Offset */
            offset: number;
            /** Text */
            text: string;
        };
        /** Message */
        Message: {
            /** Message */
            message: string;
        };
        /** MetricList */
        MetricList: {
            /** Items */
            items: components["schemas"]["MetricView"][];
            /** Next */
            next?: string | null;
        };
        /**
         * MetricPoint
         * @description One report of the script. `seq` counts from 0 within the attempt, so that a repeated call stores nothing twice.
         */
        MetricPoint: {
            /** Seq */
            seq: number;
            /** Epoch */
            epoch?: number | null;
            /** Loss */
            loss?: number | null;
            /** Accuracy */
            accuracy?: number | null;
            /**
             * More
             * @default {}
             */
            more: {
                [key: string]: number;
            };
        };
        /** MetricView */
        MetricView: {
            /** Round */
            round: number;
            /** Chunk */
            chunk: number;
            /** Agent Id */
            agent_id: string;
            /** Attempt */
            attempt: number;
            /** Seq */
            seq: number;
            /** Epoch */
            epoch: number | null;
            /** Loss */
            loss: number | null;
            /** Accuracy */
            accuracy: number | null;
            /** More */
            more: {
                [key: string]: number;
            };
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /** MetricsReply */
        MetricsReply: {
            /** Stored */
            stored: number;
        };
        /**
         * MetricsRequest
         * @description POST /agent/metrics.
         */
        MetricsRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Points */
            points: components["schemas"]["MetricPoint"][];
        };
        /** ModelCard */
        ModelCard: {
            /** Job Id */
            job_id: number;
            /** Title */
            title: string;
            /** Status */
            status: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Finished At */
            finished_at: string | null;
            /** Model Sha256 */
            model_sha256: string | null;
            /** Model Bytes */
            model_bytes: number | null;
            /** Script Sha256 */
            script_sha256: string;
            /** Dataset */
            dataset: string;
            /** Dataset Sha256 */
            dataset_sha256: string;
            /** Rows */
            rows: number;
            /** Columns */
            columns: string[];
            /** Chunks */
            chunks: number;
            /** Partitioner */
            partitioner: string;
            /** Partitioner Options */
            partitioner_options: {
                [key: string]: unknown;
            };
            /** Strategy */
            strategy: string;
            /** Strategy Options */
            strategy_options: {
                [key: string]: unknown;
            };
            /** Hyperparameters */
            hyperparameters: {
                [key: string]: unknown;
            };
            /** Arguments */
            arguments: string[];
            /** Seed */
            seed: number;
            /** Mean Loss */
            mean_loss: number | null;
            /** Mean Accuracy */
            mean_accuracy: number | null;
            /** Rounds */
            rounds: components["schemas"]["CardRound"][];
            /** Agents */
            agents: components["schemas"]["CardShare"][];
            /** Grid X */
            grid_x: string;
        };
        /** MovementList */
        MovementList: {
            /** Items */
            items: components["schemas"]["MovementOut"][];
            /** Next */
            next: number | null;
        };
        /** MovementOut */
        MovementOut: {
            /** Id */
            id: number;
            /** Amount */
            amount: number;
            /** Other */
            other: string;
            /** Reference */
            reference: string;
            /** Reason */
            reason: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * Needs
         * @description What a job asks of an agent.
         */
        Needs: {
            /**
             * Ram Bytes
             * @default 0
             */
            ram_bytes: number;
            /**
             * Gpu
             * @default false
             */
            gpu: boolean;
            /**
             * Vram Bytes
             * @default 0
             */
            vram_bytes: number;
        };
        /**
         * OutputUrlRequest
         * @description POST /agent/output_url: where to PUT a file that the script left in outputs/. Before complete_task; may be repeated.
         */
        OutputUrlRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Name */
            name: string;
            /** Size */
            size: number;
            /** Sha256 */
            sha256: string;
        };
        /** PasswordIn */
        PasswordIn: {
            /**
             * Old
             * Format: password
             */
            old: string;
            /**
             * New
             * Format: password
             */
            new: string;
        };
        /**
         * Profile
         * @description POST /agent/profile, at the agent's start and whenever it changes: what a machine takes, and how it stands.
         */
        Profile: {
            /**
             * Accepts
             * @default all
             * @enum {string}
             */
            accepts: "all" | "recipes";
            /** Paused */
            paused?: string | null;
            doctor?: components["schemas"]["DoctorReport"] | null;
        };
        /**
         * ProfileReply
         * @description How the server sees the machine.
         */
        ProfileReply: {
            /**
             * Earned
             * @default 0
             */
            earned: number;
            /**
             * Accepted
             * @default 0
             */
            accepted: number;
            /** Idle Because */
            idle_because?: string | null;
        };
        /**
         * RankRequest
         * @description POST /agent/request_rank. An agent that already holds a rank in this slot gets it again.
         */
        RankRequest: {
            /** Slot */
            slot: number;
            /** Place */
            place: string;
            /**
             * Address
             * @default
             */
            address: string;
            /**
             * Warm Job Ids
             * @default []
             */
            warm_job_ids: number[];
            /**
             * Wait S
             * @default 0
             */
            wait_s: number;
        };
        /**
         * RankView
         * @description A rank of a synchronous training.
         */
        RankView: {
            /** Rank */
            rank: number;
            /** Agent Id */
            agent_id: string;
            /** State */
            state: string;
            /** Epoch */
            epoch: number | null;
            /** Step */
            step: number | null;
            /** Loss */
            loss: number | null;
            /** Samples Per S */
            samples_per_s: number | null;
            /** Seen At */
            seen_at: string | null;
        };
        /** RegisterIn */
        RegisterIn: {
            /** Email */
            email: string;
            /**
             * Password
             * Format: password
             */
            password: string;
            /**
             * Role
             * @enum {string}
             */
            role: "buyer" | "seller" | "both";
            /** Invite */
            invite?: string | null;
        };
        /** RegisterReply */
        RegisterReply: {
            /** Agent Id */
            agent_id: string;
            /** Token */
            token: string;
            /** Heartbeat S */
            heartbeat_s: number;
            /** Poll S */
            poll_s: number;
        };
        /**
         * RegisterRequest
         * @description POST /agent/register, Bearer enrolment key.
         */
        RegisterRequest: {
            /** Agent Id */
            agent_id: string;
            hardware: components["schemas"]["Hardware"];
            profile?: components["schemas"]["Profile"] | null;
            /**
             * Protocol Version
             * @default 1
             */
            protocol_version: number;
        };
        /**
         * ResultsView
         * @description Of the last round in which an update was accepted. Means are weighted by rows.
         */
        ResultsView: {
            /** Job Id */
            job_id: number;
            /** Status */
            status: string;
            /** Reason */
            reason: string | null;
            /** Round */
            round: number | null;
            /** Rows */
            rows: number;
            /** Mean Loss */
            mean_loss: number | null;
            /** Mean Accuracy */
            mean_accuracy: number | null;
            /** Convergence Delta */
            convergence_delta: number | null;
            /** Per Agent */
            per_agent: components["schemas"]["AgentResult"][];
            /** Per Round */
            per_round: components["schemas"]["RoundResult"][];
            /** Errors */
            errors: string[];
        };
        /**
         * RoundResult
         * @description One agent in one round.
         */
        RoundResult: {
            /** Round */
            round: number;
            /** Agent Id */
            agent_id: string;
            /** Mean Loss */
            mean_loss: number | null;
            /** Mean Accuracy */
            mean_accuracy: number | null;
        };
        /** RoundView */
        RoundView: {
            /** Round */
            round: number;
            /**
             * Opened At
             * Format: date-time
             */
            opened_at: string;
            /** Closed At */
            closed_at: string | null;
            /** Updates Used */
            updates_used: number | null;
            /** Rows Used */
            rows_used: number | null;
            /** Convergence Delta */
            convergence_delta: number | null;
            /** Step Norm */
            step_norm: number | null;
            /** Mean Loss */
            mean_loss: number | null;
            /** Mean Accuracy */
            mean_accuracy: number | null;
            evaluation: components["schemas"]["EvaluationView"] | null;
            /** Deadline At */
            deadline_at: string | null;
            /** Global Model Sha256 */
            global_model_sha256: string | null;
        };
        /** SellerTask */
        SellerTask: {
            /** Task Id */
            task_id: number;
            /** Job Id */
            job_id: number;
            /** Round */
            round: number;
            /** Chunk */
            chunk: number;
            /** Attempt */
            attempt: number;
            /** Agent Id */
            agent_id: string;
            /** Status */
            status: string;
            /** Phase */
            phase: string | null;
            /** Epoch */
            epoch: number | null;
            /** Paid */
            paid: number;
            /** Reason */
            reason: string | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /** Finished At */
            finished_at: string | null;
        };
        /** SubtaskView */
        SubtaskView: {
            /** Id */
            id: number;
            /** Round */
            round: number;
            /** Chunk */
            chunk: number;
            /** Kind */
            kind: string;
            /** Status */
            status: string;
            /** Rows */
            rows: number;
            /** Attempt */
            attempt: number;
            /** Agent Id */
            agent_id: string | null;
            /** Phase */
            phase: string | null;
            /** Progress */
            progress: number | null;
            /** Epoch */
            epoch: number | null;
            /** Loss */
            loss: number | null;
            /** Accuracy */
            accuracy: number | null;
            /** Duration S */
            duration_s: number | null;
            /** Reason */
            reason: string | null;
            /** Attempts */
            attempts: components["schemas"]["AttemptView"][];
        };
        /** SummaryView */
        SummaryView: {
            agents: components["schemas"]["AgentCounts"];
            jobs: components["schemas"]["JobCounts"];
            /** Cores */
            cores: number;
        };
        /**
         * TaskReply
         * @description An attempt to run, or `task_id` null and when to ask again. URLs are relative to the server or absolute; no header goes with them.
         */
        TaskReply: {
            /** Task Id */
            task_id?: number | null;
            /** Poll After S */
            poll_after_s?: number | null;
            /**
             * Ended Job Ids
             * @default []
             */
            ended_job_ids: number[];
            /** Job Id */
            job_id?: number | null;
            /** Title */
            title?: string | null;
            /**
             * Kind
             * @default train
             * @enum {string}
             */
            kind: "train" | "evaluate" | "rank";
            /**
             * Attempt
             * @default 1
             */
            attempt: number;
            /** Lease Token */
            lease_token?: string | null;
            /**
             * Lease S
             * @default 60
             */
            lease_s: number;
            /**
             * Deadline S
             * @default 3600
             */
            deadline_s: number;
            /** Code Url */
            code_url?: string | null;
            /** Code Sha256 */
            code_sha256?: string | null;
            /** Requirements Url */
            requirements_url?: string | null;
            /** Chunk Data Url */
            chunk_data_url?: string | null;
            /** Chunk Sha256 */
            chunk_sha256?: string | null;
            /** Chunk Bytes */
            chunk_bytes?: number | null;
            /** Global Model Url */
            global_model_url?: string | null;
            /** Global Model Sha256 */
            global_model_sha256?: string | null;
            /** Schema Url */
            schema_url?: string | null;
            /**
             * Arguments
             * @default []
             */
            arguments: string[];
            /**
             * Hyperparameters
             * @default {}
             */
            hyperparameters: {
                [key: string]: unknown;
            };
            /**
             * Round
             * @default 1
             */
            round: number;
            /**
             * Rounds
             * @default 1
             */
            rounds: number;
            /**
             * Chunk
             * @default 0
             */
            chunk: number;
            /**
             * Chunks
             * @default 1
             */
            chunks: number;
            /**
             * Rows
             * @default 0
             */
            rows: number;
            /**
             * Seed
             * @default 0
             */
            seed: number;
            /**
             * @default {
             *       "output_bytes": 2147483648,
             *       "outputs_count": 20,
             *       "outputs_bytes": 67108864,
             *       "log_bytes": 10485760,
             *       "install_s": 600,
             *       "install_bytes": 2147483648
             *     }
             */
            limits: components["schemas"]["Limits"];
            /**
             * @default {
             *       "ram_bytes": 0,
             *       "gpu": false,
             *       "vram_bytes": 0
             *     }
             */
            needs: components["schemas"]["Needs"];
            gang?: components["schemas"]["GangTask"] | null;
        };
        /**
         * TaskRequest
         * @description POST /agent/request_task. An agent that already holds a live attempt gets that same attempt again: its reply was lost.
         */
        TaskRequest: {
            /**
             * Warm Job Ids
             * @default []
             */
            warm_job_ids: number[];
            /**
             * Accept
             * @default all
             * @enum {string}
             */
            accept: "all" | "recipes";
            /**
             * Wait S
             * @default 0
             */
            wait_s: number;
        };
        /** TokenOut */
        TokenOut: {
            /** Access Token */
            access_token: string;
            /**
             * Token Type
             * @default bearer
             * @constant
             */
            token_type: "bearer";
            user: components["schemas"]["UserOut"];
        };
        /** UploadIn */
        UploadIn: {
            /** Name */
            name: string;
            /** Bytes */
            bytes: number;
            /** Sha256 */
            sha256?: string | null;
        };
        /**
         * UploadOut
         * @description A resumable upload. `offset` is how many bytes have arrived; `dataset` stands there once all have.
         */
        UploadOut: {
            /** Upload Id */
            upload_id: string;
            /** Offset */
            offset: number;
            /** Bytes */
            bytes: number;
            dataset?: components["schemas"]["DatasetOut"] | null;
        };
        /** UploadUrlReply */
        UploadUrlReply: {
            /** Url */
            url: string;
            /**
             * Headers
             * @default {}
             */
            headers: {
                [key: string]: string;
            };
            /** Expires S */
            expires_s: number;
        };
        /**
         * UploadUrlRequest
         * @description POST /agent/upload_url: where to PUT model.pth.
         */
        UploadUrlRequest: {
            /** Task Id */
            task_id: number;
            /** Lease Token */
            lease_token: string;
            /** Size */
            size: number;
        };
        /** UserOut */
        UserOut: {
            /** Id */
            id: number;
            /** Email */
            email: string;
            /**
             * Role
             * @enum {string}
             */
            role: "buyer" | "seller" | "both";
            /** Credits */
            credits: number;
        };
        /** WalletOut */
        WalletOut: {
            /** User Id */
            user_id: number;
            /** Credits */
            credits: number;
            /** Held */
            held: number;
            /**
             * Role
             * @enum {string}
             */
            role: "buyer" | "seller" | "both";
        };
        /** WheelView */
        WheelView: {
            /** Name */
            name: string;
            /** Url */
            url: string;
            /** Bytes */
            bytes: number;
            /** Sha256 */
            sha256: string;
        };
        /** WorkerView */
        WorkerView: {
            /** Version */
            version: string;
            /** Install Url */
            install_url: string;
            /** Items */
            items: components["schemas"]["WheelView"][];
            /** Next */
            next?: number | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    register_auth_register_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    login_auth_login_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logout_auth_logout_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logout_all_auth_logout_all_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    me_auth_me_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    change_password_auth_password_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    wallet_auth_wallet__user_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WalletOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    wallet_transfers_auth_wallet__user_id__transfers_get: {
        parameters: {
            query?: {
                before?: number | null;
                limit?: number;
            };
            header?: never;
            path: {
                user_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MovementList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_keys_agent_keys_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_key_agent_keys_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KeyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyCreated"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    register_agent_register_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegisterReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    request_rank_agent_request_rank_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RankRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    checkpoint_url_agent_checkpoint_url_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CheckpointUrlRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadUrlReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    checkpoint_agent_checkpoint_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CheckpointRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    heartbeat_agent_heartbeat_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HeartbeatRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HeartbeatReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    profile_agent_profile_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Profile"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProfileReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    request_task_agent_request_task_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TaskRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    metrics_agent_metrics_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MetricsRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MetricsReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logs_agent_logs_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LogsRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogsReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_url_agent_upload_url_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UploadUrlRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadUrlReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    output_url_agent_output_url_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OutputUrlRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadUrlReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_result_agent_upload_result_post: {
        parameters: {
            query: {
                task_id: number;
            };
            header: {
                "Gridx-Lease-Token": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    complete_task_agent_complete_task_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompleteRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompleteReply"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    fail_task_agent_fail_task_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FailRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    revoke_key_agent_keys__key_id__delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    remove_agent_agent__agent_id__delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_datasets_datasets_get: {
        parameters: {
            query?: {
                before?: number | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatasetList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_dataset_datasets_post: {
        parameters: {
            query?: {
                name?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/csv": string;
                "multipart/form-data": {
                    /** Format: binary */
                    file_data: string;
                    name?: string;
                };
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatasetOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    begin_upload_datasets_uploads_post: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UploadIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    look_at_upload_datasets_uploads__upload_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    give_up_upload_datasets_uploads__upload_id__delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    continue_upload_datasets_uploads__upload_id__patch: {
        parameters: {
            query?: never;
            header: {
                "upload-offset": number;
            };
            path: {
                upload_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_dataset_datasets__dataset_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                dataset_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatasetOut"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_dataset_datasets__dataset_id__delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                dataset_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    preview_dataset_datasets__dataset_id__preview_get: {
        parameters: {
            query?: {
                rows?: number;
                chunks?: number | null;
                partitioner?: string;
                column?: string | null;
                alpha?: number | null;
                shards_per_chunk?: number | null;
                proportions?: number[] | null;
                seed?: number;
            };
            header?: never;
            path: {
                dataset_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatasetPreview"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_jobs_upload_post: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": {
                    title: string;
                    /**
                     * Format: binary
                     * @description the training script
                     */
                    file_code: string;
                    /**
                     * Format: binary
                     * @description requirements.txt
                     */
                    file_req?: string;
                    /**
                     * Format: binary
                     * @description the CSV; or give dataset_id
                     */
                    file_data?: string;
                    dataset_id?: number;
                    /** @description command line of the script */
                    arguments?: string;
                    /** @description a JSON object */
                    hyperparameters?: string;
                    /** @description a JSON object: ram_bytes, gpu, vram_bytes */
                    needs?: string;
                    /**
                     * @description federated or ddp
                     * @default federated
                     */
                    mode?: string;
                    /** @default 5 */
                    chunks?: number;
                    /** @default 1 */
                    rounds?: number;
                    /** @default iid */
                    partitioner?: string;
                    /** @description a JSON object, the partitioner's own options */
                    partitioner_options?: string;
                    /** @default fedavg */
                    strategy?: string;
                    /** @description a JSON object, the strategy's own options */
                    strategy_options?: string;
                    /** @default 3600 */
                    time_limit_s?: number;
                    min_updates?: number;
                    seed?: number;
                    /** @default false */
                    keep_updates?: boolean;
                    /** @default false */
                    require_idle?: boolean;
                    /**
                     * @description share of the chunks that train in a round
                     * @default 1
                     */
                    fraction?: number;
                    round_deadline_s?: number;
                    /** @default true */
                    backups?: boolean;
                    /**
                     * @description share of the rows for evaluate()
                     * @default 0
                     */
                    held_out?: number;
                    /** @default 2 */
                    evaluations?: number;
                    /** @description a JSON object: patience, min_delta, monitor */
                    early_stopping?: string;
                    initial_job_id?: number;
                    initial_round?: number;
                    /**
                     * Format: binary
                     * @description a model.pth to start from
                     */
                    file_model?: string;
                };
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobCreated"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    submit_jobs_post: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobCreated"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_jobs_jobs_list__user_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobSummary"][];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    download_jobs_download__job_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_job_jobs__job_id__get: {
        parameters: {
            query?: {
                round?: number | null;
            };
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_jobs__job_id__delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    cancel_jobs__job_id__cancel_post: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    results_jobs__job_id__results_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResultsView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_artifacts_jobs__job_id__artifacts_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ArtifactList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    script_jobs__job_id__script_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    requirements_jobs__job_id__requirements_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    card_jobs__job_id__card_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelCard"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    card_as_markdown_jobs__job_id__card_md_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    metrics_as_csv_jobs__job_id__metrics_csv_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    metrics_jobs__job_id__metrics_get: {
        parameters: {
            query?: {
                after?: string;
                round?: number | null;
                limit?: number;
            };
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MetricList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    logs_jobs__job_id__logs_get: {
        parameters: {
            query?: {
                after?: number;
                subtask?: number | null;
                limit?: number;
            };
            header?: never;
            path: {
                job_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogList"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    summary_stats_summary_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SummaryView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_agents_stats_agents_get: {
        parameters: {
            query?: {
                status?: ("IDLE" | "BUSY" | "OFFLINE" | "ONLINE") | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentView"][];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_online_stats_agents_online_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentView"][];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_agent_stats_agents__agent_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    my_agents_stats_my_agents__user_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentView"][];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    seller_tasks_stats_seller_tasks__user_id__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SellerTask"][];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    download_file: {
        parameters: {
            query: {
                expires: number;
                method: string;
                sig: string;
                name?: string;
                max?: number;
            };
            header?: never;
            path: {
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    upload_file: {
        parameters: {
            query: {
                expires: number;
                method: string;
                sig: string;
                max?: number;
                name?: string;
            };
            header?: never;
            path: {
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    install_script_install_sh_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_wheels_downloads_worker_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerView"];
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    download_wheel_downloads__file__get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                file: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    health_health_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: string;
                    };
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    metrics_metrics_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused: the detail says what to do next */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
            /** @description The server's own trouble; 503 names in Retry-After when to try again */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
}
